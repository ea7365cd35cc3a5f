// FingerprintJS 3 and later: the same answer on every device.
(function () {
  "use strict";
  var result = { visitorId: "00000000000000000000000000000000", confidence: { score: 0 }, components: {}, version: "3.4.2", requestId: "" };
  var agent = { get: function () { return Promise.resolve(result); } };
  window.FingerprintJS = { load: function () { return Promise.resolve(agent); }, hashComponents: function () { return result.visitorId; },
    componentsToDebugString: function () { return ""; } };
  window.FingerprintJS.default = window.FingerprintJS;
})();
