// Enhanced link attribution: a queue that swallows.
(function () {
  "use strict";
  var noop = function () {};
  window._gaq = window._gaq || { push: noop };
})();
