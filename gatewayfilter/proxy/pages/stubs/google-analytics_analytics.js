// The command queue of analytics.js, which measures nothing but keeps its promises: hit callbacks are called.
(function () {
  "use strict";
  var noop = function () {};
  var name = window.GoogleAnalyticsObject || "ga";
  var queued = window[name] && window[name].q;
  var tracker = { get: noop, set: noop, send: function () { settle(arguments); } };
  function settle(parts) {
    var last = parts[parts.length - 1];
    var callback = typeof last === "function" ? last : last && last.hitCallback;
    if (typeof callback === "function") { setTimeout(function () { callback(tracker); }, 1); }
  }
  function ga() { settle(arguments); }
  ga.create = function () { return tracker; };
  ga.getByName = ga.create;
  ga.getAll = function () { return [tracker]; };
  ga.remove = noop;
  ga.loaded = true;
  window[name] = ga;
  (Array.isArray(queued) ? queued : []).forEach(settle);
  var layer = window.dataLayer;
  if (layer && layer.hide && typeof layer.hide.end === "function") { layer.hide.end(); }
})();
