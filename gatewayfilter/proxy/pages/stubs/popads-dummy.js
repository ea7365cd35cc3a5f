// PopAds: the names that pages look for.
(function () {
  "use strict";
  delete window.PopAds;
  delete window.popns;
  Object.defineProperties(window, { PopAds: { value: {}, configurable: true }, popns: { value: {}, configurable: true } });
})();
