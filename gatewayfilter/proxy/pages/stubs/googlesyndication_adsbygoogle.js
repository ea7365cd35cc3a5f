// AdSense: every slot counts as filled, with nothing.
(function () {
  "use strict";
  function fill() {
    Array.prototype.forEach.call(document.querySelectorAll("ins.adsbygoogle:not([data-adsbygoogle-status])"), function (slot) {
      slot.setAttribute("data-adsbygoogle-status", "done");
      slot.setAttribute("data-ad-status", "unfilled");
    });
  }
  window.adsbygoogle = { loaded: true, pauseAdRequests: 0, push: function (item) {
    if (item && typeof item.callback === "function") { setTimeout(item.callback, 1); }
    fill();
  } };
  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", fill); } else { fill(); }
})();
