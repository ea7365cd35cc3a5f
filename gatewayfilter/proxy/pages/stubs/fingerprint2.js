// FingerprintJS 2: the same answer on every device.
(function () {
  "use strict";
  function Fingerprint2() { if (!(this instanceof Fingerprint2)) { return new Fingerprint2(); } }
  function get(options, callback) {
    callback = typeof options === "function" ? options : callback;
    if (typeof callback === "function") { setTimeout(function () { callback("0", []); }, 1); }
  }
  Fingerprint2.get = function (options, callback) {
    callback = typeof options === "function" ? options : callback;
    if (typeof callback === "function") { setTimeout(function () { callback([]); }, 1); }
  };
  Fingerprint2.getPromise = function () { return Promise.resolve([]); };
  Fingerprint2.getV18 = get;
  Fingerprint2.x64hash128 = function () { return "00000000000000000000000000000000"; };
  Fingerprint2.VERSION = "2.1.4";
  Fingerprint2.prototype.get = get;
  window.Fingerprint2 = Fingerprint2;
})();
