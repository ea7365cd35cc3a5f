// AMP without its runtime: shows what the boilerplate hides.
(function () {
  "use strict";
  var noop = function () {};
  var sheet = document.createElement("style");
  sheet.textContent = "html, body { animation: none !important; visibility: visible !important; opacity: 1 !important }";
  (document.head || document.documentElement).appendChild(sheet);
  window.AMP = window.AMP || { push: noop };
})();
