// comScore: beacons that are not sent.
(function () {
  "use strict";
  var noop = function () {};
  window.COMSCORE = { beacon: noop, purge: function () { window._comscore = []; } };
})();
