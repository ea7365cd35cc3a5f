// Naver Analytics: nothing is logged.
(function () {
  "use strict";
  var noop = function () {};
  window.wcs_add = window.wcs_add || {};
  window.wcs_do = noop;
  window.wcs = { inflow: noop, event: noop, trans: noop, pageview: noop };
})();
