// Yandex Metrica, the older counter.
(function () {
  "use strict";
  function Metrika() {}
  ("accurateTrackBounce addFileExtension clickmap destruct enableAll file firstPartyParams firstPartyParamsHashed hit notBounce params setUserID " +
    "trackLinks userParams").split(" ").forEach(function (name) { Metrika.prototype[name] = function () { settle(arguments); }; });
  Metrika.prototype.extLink = Metrika.prototype.reachGoal = Metrika.prototype.file = function () { settle(arguments); };
  Metrika.prototype.getClientID = function (callback) { if (typeof callback === "function") { setTimeout(function () { callback(""); }, 1); } return ""; };
  Metrika.prototype.replacePhones = function () { return Promise.resolve(); };
  function settle(parts) {
    Array.prototype.forEach.call(parts, function (part) {
      var callback = typeof part === "function" ? part : part && typeof part === "object" && part.callback;
      if (typeof callback === "function") { setTimeout(callback, 1); }
    });
  }

  window.Ya = window.Ya || {};
  window.Ya.Metrika = window.Ya.Metrika2 = Metrika;
  ["yandex_metrika_callbacks", "yandex_metrika_callbacks2"].forEach(function (name) {
    var queued = window[name];
    window[name] = { push: function (callback) { if (typeof callback === "function") { setTimeout(callback, 1); } } };
    (Array.isArray(queued) ? queued : []).forEach(window[name].push);
  });
})();
