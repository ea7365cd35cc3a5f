// Chartbeat: nothing is measured.
(function () {
  "use strict";
  var noop = function () {};
  window.pSUPERFLY = { activity: noop, virtualPage: noop };
  window.pSUPERFLY_mab = window.pSUPERFLY_mab || {};
})();
