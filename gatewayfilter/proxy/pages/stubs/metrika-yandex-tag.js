// Yandex Metrica, the tag: goals are not reported, callbacks are called.
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

  var queued = window.ym && window.ym.a;
  function ym() {
    if (arguments[1] === "getClientID") { Metrika.prototype.getClientID(arguments[2]); } else { settle(arguments); }
  }
  ym.l = 1;
  window.ym = ym;
  window.Ya = window.Ya || {};
  window.Ya.Metrika2 = window.Ya.Metrika = Metrika;
  Array.prototype.forEach.call(queued || [], function (call) { ym.apply(null, call); });
})();
