// Google Publisher Tag: slots that stay empty; queued commands run.
(function () {
  "use strict";
  var noop = function () {};
  var slots = [];
  function self() { return this; }
  function service() {
    return { addEventListener: self, removeEventListener: function () { return false; }, enableAsyncRendering: noop, enableSyncRendering: noop,
      getSlots: function () { return slots.slice(); }, getName: function () { return "publisher_ads"; }, refreshAllSlots: noop,
      set: self, get: function () { return null; }, getAttributeKeys: function () { return []; }, setTargeting: self,
      clearTargeting: self, getTargeting: function () { return []; }, getTargetingKeys: function () { return []; },
      setCategoryExclusion: self, clearCategoryExclusions: self, setCentering: noop, setCookieOptions: self, setForceSafeFrame: self,
      setLocation: self, setPrivacySettings: self, setPublisherProvidedId: self, setRequestNonPersonalizedAds: self,
      setSafeFrameConfig: self, setTagForChildDirectedTreatment: self, setVideoContent: noop, setConfig: noop,
      updateCorrelator: self, isInitialLoadDisabled: function () { return true; }, disableInitialLoad: noop, enableLazyLoad: noop,
      enableSingleRequest: function () { return true; }, enableVideoAds: noop, collapseEmptyDivs: function () { return true; },
      clear: function () { return true; }, refresh: noop, display: noop, defineOutOfPagePassback: slot, definePassback: slot };
  }
  var publisher = service(), companion = service(), content = service();
  content.setContent = noop;
  companion.setRefreshUnfilledSlots = noop;
  function slot(path, sizes, id) {
    var made = { addService: self, clearCategoryExclusions: self, clearTargeting: self, defineSizeMapping: self, set: self,
      setClickUrl: self, setCollapseEmptyDiv: self, setForceSafeFrame: self, setSafeFrameConfig: self, setTargeting: self,
      setCategoryExclusion: self, updateTargetingFromMap: self, setConfig: noop, get: function () { return null; },
      getAdUnitPath: function () { return path || ""; }, getSlotElementId: function () { return id || ""; },
      getAttributeKeys: function () { return []; }, getCategoryExclusions: function () { return []; }, getHtml: function () { return ""; },
      getDomId: function () { return id || ""; }, getName: function () { return path || ""; }, getSizes: function () { return []; },
      getServices: function () { return [publisher]; }, getTargeting: function () { return []; },
      getTargetingKeys: function () { return []; }, getResponseInformation: function () { return null; } };
    slots.push(made);
    return made;
  }
  function run(command) { try { if (typeof command === "function") { command(); } } catch (error) { setTimeout(function () { throw error; }); } }
  var googletag = window.googletag = window.googletag || {};
  var queued = Array.isArray(googletag.cmd) ? googletag.cmd : [];
  googletag.apiReady = googletag.pubadsReady = true;
  googletag.pubads = function () { return publisher; };
  googletag.companionAds = function () { return companion; };
  googletag.content = function () { return content; };
  googletag.defineSlot = slot;
  googletag.defineOutOfPageSlot = slot;
  googletag.destroySlots = function () { slots.length = 0; return true; };
  googletag.disablePublisherConsole = googletag.display = googletag.enableServices = googletag.openConsole = googletag.setConfig = noop;
  googletag.setAdIframeTitle = noop;
  googletag.getVersion = function () { return ""; };
  googletag.sizeMapping = function () { return { addSize: self, build: function () { return []; } }; };
  googletag.enums = { OutOfPageFormat: {}, RewardedPayload: {}, TrafficSource: {} };
  googletag.cmd = { push: function () { Array.prototype.forEach.call(arguments, run); return 1; } };
  queued.forEach(run);
})();
