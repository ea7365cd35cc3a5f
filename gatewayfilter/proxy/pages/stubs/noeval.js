// eval() that does nothing and says so.
(function () {
  "use strict";
  window.eval = function (text) { console.info("eval was prevented: %s", String(text).slice(0, 200)); };
})();
