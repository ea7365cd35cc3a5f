// FuckAdBlock 3 and 4: reports that nothing is blocked.
(function () {
  "use strict";
  var noop = function () {};
  function Detector() {}
  Detector.prototype = { check: function () { return true; }, clearEvent: noop, emitEvent: function () { return this; },
    on: function (detected, callback) { if (detected === false && typeof callback === "function") { setTimeout(callback, 1); } return this; },
    onDetected: function () { return this; },
    onNotDetected: function (callback) { if (typeof callback === "function") { setTimeout(callback, 1); } return this; },
    setOption: function () { return this; }, options: { set: function () { return this; }, get: function () { return this; } } };
  Object.defineProperty(Detector.prototype, "debug", { value: { set: noop, get: function () { return false; } } });

  window.FuckAdBlock = window.fuckAdBlockConstructor = Detector;
  window.fuckAdBlock = new Detector();
  window.SniffAdBlock = Detector;
  window.sniffAdBlock = new Detector();
})();
