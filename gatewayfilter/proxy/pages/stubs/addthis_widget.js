// AddThis: buttons that share nothing.
(function () {
  "use strict";
  var noop = function () {};
  window.addthis = { addEventListener: noop, button: noop, counter: noop, init: noop, layers: noop, ready: noop, sharecounters: { getShareCounts: noop },
    toolbox: noop, update: noop, user: { ready: noop, getServices: noop, getID: noop } };
})();
