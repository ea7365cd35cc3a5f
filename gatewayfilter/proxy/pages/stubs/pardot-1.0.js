// Pardot: visits are not reported.
(function () {
  "use strict";
  var noop = function () {};
  window.piVersion = "1.0.2";
  window.piScriptNum = 0;
  window.piScriptObj = [];
  window.checkNamespace = window.getPardotUrl = window.piGetParameter = window.piSetCookie = window.piGetCookie = window.piTracker = window.piResponse = noop;
})();
