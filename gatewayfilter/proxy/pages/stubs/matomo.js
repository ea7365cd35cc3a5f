// Matomo and Piwik: a tracker that counts nobody.
(function () {
  "use strict";
  var noop = function () {};
  function tracker() {
    return new Proxy({}, { get: function (_, name) {
      if (name === "then") { return undefined; }
      return /^(get|is|has)/.test(String(name)) ? function () { return ""; } : noop;
    } });
  }
  var one = tracker();
  window.Piwik = window.Matomo = { getTracker: function () { return one; }, getAsyncTracker: function () { return one; }, getAsyncTrackers: function () { return [one]; },
    addTracker: function () { return one; }, addPlugin: noop, on: noop, off: noop, trigger: noop, retryMissedPluginCalls: noop, initialized: true };
  function run(command) { if (Array.isArray(command) && typeof command[0] === "function") { command[0].call(one); } }
  var queued = window._paq;
  window._paq = { push: function () { Array.prototype.forEach.call(arguments, run); } };
  (Array.isArray(queued) ? queued : []).forEach(run);
  if (typeof window.matomoAsyncInit === "function") { setTimeout(window.matomoAsyncInit, 1); }
  if (typeof window.piwikAsyncInit === "function") { setTimeout(window.piwikAsyncInit, 1); }
})();
