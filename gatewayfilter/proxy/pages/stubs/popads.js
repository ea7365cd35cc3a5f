// PopAds: its loader finds itself loaded already.
(function () {
  "use strict";
  var noop = function () {};
  window.PopAds = window.PopAds || {};
  window.popns = window.popns || {};
  window.popunder = noop;
})();
