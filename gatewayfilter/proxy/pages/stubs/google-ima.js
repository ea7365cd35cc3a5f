// The IMA SDK for HTML5: every request for ads ends at once with an error, so that players go on to the content.
(function () {
  "use strict";
  var noop = function () {};
  var ima = {};
  function listeners(target) {
    var known = {};
    target.addEventListener = function (types, listener, _, scope) {
      [].concat(types).forEach(function (type) { (known[type] = known[type] || []).push(scope ? listener.bind(scope) : listener); });
    };
    target.removeEventListener = function (types) { [].concat(types).forEach(function (type) { delete known[type]; }); };
    target.dispatch = function (event) {
      (known[event.type] || []).slice().forEach(function (listener) { listener(event); });
    };
    return target;
  }
  function methods(target, names, result) {
    names.split(" ").forEach(function (name) { target[name] = function () { return result; }; });
    return target;
  }
  ima.AdError = function (type, code, vast, message, request, context) {
    methods(this, "getErrorCode", code); methods(this, "getVastErrorCode", vast); methods(this, "getMessage toString", message);
    methods(this, "getType", type); methods(this, "getInnerError", null); this.request = request; this.context = context;
  };
  ima.AdError.ErrorCode = { VAST_EMPTY_RESPONSE: 1009, ADS_REQUEST_NETWORK_ERROR: 1012, UNKNOWN_ERROR: 900 };
  ima.AdError.Type = { AD_LOAD: "adLoadError", AD_PLAY: "adPlayError" };
  ima.AdErrorEvent = function (error, request, context) {
    this.type = "adError";
    methods(this, "getError", error); methods(this, "getUserRequestContext", context);
  };
  ima.AdErrorEvent.Type = { AD_ERROR: "adError" };
  ima.AdDisplayContainer = function () { methods(this, "initialize destroy"); };
  ima.AdsRenderingSettings = function () {};
  ima.AdsRequest = function () { methods(this, "setAdWillAutoPlay setAdWillPlayMuted setContinuousPlayback"); };
  ima.AdsLoader = function () {
    var loader = listeners(this);
    methods(loader, "contentComplete destroy getVersion");
    loader.settings = ima.settings;
    loader.getSettings = function () { return ima.settings; };
    loader.requestAds = function (request, context) {
      var error = new ima.AdError("adLoadError", 1009, 1009, "No ads here.", request, context);
      setTimeout(function () { loader.dispatch(new ima.AdErrorEvent(error, request, context)); }, 1);
    };
  };
  ima.AdsManager = function () {
    methods(listeners(this), "collapse configureAdsManager destroy discardAdBreak expand focus init pause resize resume skip start stop");
    methods(this, "getVolume getRemainingTime", 0); methods(this, "getCuePoints", []); methods(this, "getCurrentAd", null);
    methods(this, "isCustomClickTrackingUsed isCustomPlaybackUsed getAdSkippableState", false); this.setVolume = noop;
  };
  ima.AdsManagerLoadedEvent = function () {};
  ima.AdsManagerLoadedEvent.Type = { ADS_MANAGER_LOADED: "adsManagerLoaded" };
  ima.AdEvent = function (type) { this.type = type; };
  ima.AdEvent.Type = {};
  ("AD_BREAK_READY AD_BUFFERING AD_CAN_PLAY AD_METADATA AD_PROGRESS ALL_ADS_COMPLETED CLICK COMPLETE CONTENT_PAUSE_REQUESTED " +
    "CONTENT_RESUME_REQUESTED DURATION_CHANGE EXPANDED_CHANGED FIRST_QUARTILE IMPRESSION INTERACTION LINEAR_CHANGED LOADED LOG " +
    "MIDPOINT PAUSED RESUMED SKIPPABLE_STATE_CHANGED SKIPPED STARTED THIRD_QUARTILE USER_CLOSE VIDEO_CLICKED VIDEO_ICON_CLICKED " +
    "VIEWABLE_IMPRESSION VOLUME_CHANGED VOLUME_MUTED").split(" ").forEach(function (name) {
    ima.AdEvent.Type[name] = name.toLowerCase().replace(/_(.)/g, function (_, mark) { return mark.toUpperCase(); });
  });
  ima.ImaSdkSettings = function () {
    methods(this, "setAutoPlayAdBreaks setCompanionBackfill setCookiesEnabled setDisableCustomPlaybackForIOS10Plus setFeatureFlags " +
      "setLocale setNumRedirects setPlayerType setPlayerVersion setPpid setSessionId setUniqueAds setVpaidAllowed setVpaidMode");
    methods(this, "getLocale getPlayerType getPlayerVersion getPpid", ""); methods(this, "getNumRedirects", 4);
    methods(this, "isCookiesEnabled getDisableCustomPlaybackForIOS10Plus", false); methods(this, "getFeatureFlags", {});
  };
  ima.ImaSdkSettings.CompanionBackfillMode = { ALWAYS: "always", ON_MASTER_AD: "on_master_ad" };
  ima.ImaSdkSettings.VpaidMode = { DISABLED: 0, ENABLED: 1, INSECURE: 2 };
  ima.UiElements = { AD_ATTRIBUTION: "adAttribution", COUNTDOWN: "countdown" };
  ima.ViewMode = { FULLSCREEN: "fullscreen", NORMAL: "normal" };
  ima.OmidAccessMode = { DOMAIN: "domain", FULL: "full", LIMITED: "limited" };
  ima.settings = new ima.ImaSdkSettings();
  ima.VERSION = "3.0.0";
  ima.dai = { api: {} };
  window.google = window.google || {};
  window.google.ima = ima;
})();
