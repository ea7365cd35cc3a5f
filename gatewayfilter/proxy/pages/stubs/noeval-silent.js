// eval() that does nothing.
(function () {
  "use strict";
  var noop = function () {};
  window.eval = noop;
})();
