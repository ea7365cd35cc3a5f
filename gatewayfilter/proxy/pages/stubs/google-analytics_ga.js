// The older ga.js: trackers whose methods do nothing, and a queue that calls functions.
(function () {
  "use strict";
  var noop = function () {};
  var methods = "_addIgnoredOrganic _addIgnoredRef _addItem _addOrganic _addTrans _clearIgnoredOrganic _clearIgnoredRef " +
    "_clearOrganic _cookiePathCopy _deleteCustomVar _getName _getAccount _getVersion _getVisitorCustomVar _initData _linkByPost " +
    "_setAccount _setAllowAnchor _setAllowHash _setAllowLinker _setCampaignTrack _setClientInfo _setCookiePath " +
    "_setCustomVar _setDetectFlash _setDetectTitle _setDomainName _setLocalGifPath _setSampleRate _setSiteSpeedSampleRate " +
    "_setSessionCookieTimeout _setVisitorCookieTimeout _trackEvent _trackPageview _trackSocial _trackTiming _trackTrans";
  function Tracker() {}
  methods.split(" ").forEach(function (method) { Tracker.prototype[method] = noop; });
  Tracker.prototype._getLinkerUrl = function (url) { return url; };
  Tracker.prototype._link = function (url) { window.location.assign(url); };
  var tracker = new Tracker();
  window._gat = {
    _anonymizeIP: noop, _createTracker: function () { return tracker; }, _forceSSL: noop,
    _getPlugin: function () { return tracker; }, _getTracker: function () { return tracker; },
    _getTrackerByName: function () { return tracker; }, _getTrackers: function () { return [tracker]; }
  };
  function run(command) {
    if (typeof command === "function") { command(); }
    else if (Array.isArray(command) && command[0] === "_link" && typeof command[1] === "string") { tracker._link(command[1]); }
  }
  var queued = window._gaq;
  window._gaq = { push: function () { Array.prototype.forEach.call(arguments, run); return 0; },
    _createAsyncTracker: function () { return tracker; }, _getAsyncTracker: function () { return tracker; } };
  if (Array.isArray(queued)) { queued.forEach(run); }
})();
