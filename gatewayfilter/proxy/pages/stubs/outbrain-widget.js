// Outbrain: recommendations that never come.
(function () {
  "use strict";
  var noop = function () {};
  var names = "callClick callLoadMore callRecs callUserZapping callWhatIs cancelRecommendation cancelRecs closeCard closeModal closeTbx " +
    "dispatch errorInjectionHandler getCountOfRecs getStat imageError manualVideoClicked onOdbReturn onVideoClick pagerLoad recClicked refreshSpecificWidget " +
    "refreshWidget reloadWidget renderSpaWidgets researchWidget returnedError returnedHtmlData returnedIrdData returnedJsonData scrollLoad " +
    "showDescription showRecInIframe userZappingMessage zappingFormAction";
  var extern = { video: { getVideoRecs: noop, videoClicked: noop } };
  names.split(" ").forEach(function (name) { extern[name] = noop; });
  window.OBR = window.OBR || { extern: extern };
  window.OB_releaseVer = window.OB_releaseVer || "0";
})();
