// Prebid: auctions without bids; also what naive checks for a blocked "ads" script look for.
(function () {
  "use strict";
  var noop = function () {};
  window.canRunAds = true;
  window.isAdBlockActive = false;
  var pbjs = window.pbjs = window.pbjs || {};
  function run(command) { if (typeof command === "function") { command(); } }
  var queued = [].concat(pbjs.que || [], pbjs.cmd || []);
  ("addAdUnits aliasBidder bidderSettings clearAuction disableAnalytics enableAnalytics enableIdentity offEvent onEvent registerAnalyticsAdapter " +
    "registerBidAdapter removeAdUnit renderAd setConfig setTargetingForAst setTargetingForGPTAsync triggerUserSyncs").split(" ")
    .forEach(function (name) { pbjs[name] = noop; });
  ("getAllPrebidWinningBids getAllWinningBids getHighestCpmBids getNoBids").split(" ").forEach(function (name) { pbjs[name] = function () { return []; }; });
  ("getAdserverTargeting getBidResponses getConfig getUserIds").split(" ").forEach(function (name) { pbjs[name] = function () { return {}; }; });
  pbjs.adUnits = pbjs.adUnits || [];
  pbjs.requestBids = function (request) {
    if (request && typeof request.bidsBackHandler === "function") { setTimeout(function () { request.bidsBackHandler({}, false, ""); }, 1); }
    return Promise.resolve({ bids: {}, timedOut: false });
  };
  pbjs.libLoaded = true;
  pbjs.que = pbjs.cmd = { push: run };
  queued.forEach(run);
})();
