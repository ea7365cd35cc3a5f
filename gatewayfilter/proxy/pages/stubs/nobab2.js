// BlockAdBlock, the variant without an API: its timers never find anything.
(function () {
  "use strict";
  var noop = function () {};
  window.blockAdBlock = window.blockAdBlock || { on: noop, onDetected: noop, onNotDetected: noop, check: noop };
  window.adblock = window.adblockDetected = false;
})();
