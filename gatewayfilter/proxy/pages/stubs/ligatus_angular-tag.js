// Ligatus: an empty tag.
(function () {
  "use strict";
  var noop = function () {};
  window.adProtect = true;
  window.uABPInject = noop;
})();
