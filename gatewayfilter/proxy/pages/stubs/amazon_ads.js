// Amazon's older header bidding: no bids.
(function () {
  "use strict";
  var noop = function () {};
  function soon(callback) { if (typeof callback === "function") { setTimeout(callback, 1); } }
  window.amznads = window.amznads || {};
  var ads = { appendScriptTag: noop, appendTargetingToAdServerUrl: function (url) { return url; },
    appendTargetingToQueryString: function (query) { return query; }, clearTargetingFromGPTAsync: noop, doAllTasks: noop,
    doGetAdsAsync: function (_, callback) { soon(callback); }, doTask: noop, detectIframeAndGetURL: noop,
    getAds: noop, getAdsAsync: function (_, callback) { soon(callback); }, getAdForSlot: noop, getAdsCallback: function (_, callback) { soon(callback); },
    getDisplayAds: noop, getDisplayAdsAsync: noop, getDisplayAdsCallback: function (_, callback) { soon(callback); },
    getKeys: function () { return []; }, getReferrerURL: function () { return ""; }, getScriptSource: noop,
    getTargeting: function () { return {}; }, getTokens: function () { return []; }, getValidMilliseconds: noop, getVideoAds: noop,
    getVideoAdsAsync: noop, getVideoAdsCallback: function (_, callback) { soon(callback); }, handleCallBack: noop,
    hasAds: function () { return false; }, renderAd: noop, saveAds: noop, setTargeting: noop, setTargetingForGPTAsync: noop,
    setTargetingForGPTSync: noop, tryGetAdsAsync: noop, updateAds: noop };
  Object.keys(ads).forEach(function (name) { window.amznads[name] = ads[name]; });
  window.amzn_ads = window.amzn_ads || noop;
  window.aax_write = window.aax_write || noop;
  window.aax_render_ad = window.aax_render_ad || noop;
})();
