// NitroPay: ads that are created and stay empty.
(function () {
  "use strict";
  var noop = function () {};
  var queued = window.nitroAds && window.nitroAds.queue;
  function createAd(id) { return Promise.resolve({ id: id, onNavigate: noop, renderAd: noop, refresh: noop }); }
  window.nitroAds = { loaded: true, createAd: createAd, addUserToken: function () { return Promise.resolve(); }, stop: noop, clearUserTokens: noop,
    queue: { push: noop } };
  (Array.isArray(queued) ? queued : []).forEach(function (call) {
    if (call && call[0] === "createAd" && typeof call[2] === "function") { createAd().then(call[2]); }
  });
  document.dispatchEvent(new CustomEvent("nitroAds.loaded"));
})();
