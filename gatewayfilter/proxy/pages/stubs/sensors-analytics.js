// Sensors Analytics: events that are not sent.
(function () {
  "use strict";
  var noop = function () {};
  var name = window.sensorsDataAnalytic201505 || "sensors";
  var api = { store: { set: noop, get: noop }, lib: {}, para: {} };
  ("init identify login logout setProfile setOnceProfile appendProfile incrementProfile deleteProfile unsetProfile registerPage register registerOnce " +
    "clearAllRegister autoTrackWithoutProfile autoTrackSinglePage trackHeatMap enableLocalLog disableLocalLog use setItem deleteItem bind unbind").split(" ")
    .forEach(function (method) { api[method] = noop; });
  function done() {
    var last = arguments[arguments.length - 1];
    if (typeof last === "function") { setTimeout(last, 1); }
  }
  api.track = api.quick = api.autoTrack = api.trackLink = done;
  api.quick = function (what) { if (what === "isReady") { done.apply(null, arguments); } return what === "getAnonymousID" ? "" : undefined; };
  api.getPresetProperties = function () { return {}; };
  window[typeof name === "string" ? name : "sensors"] = api;
})();
