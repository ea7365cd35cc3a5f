// A loader of advertising: nothing to load.
(function () {
  "use strict";
  var noop = function () {};
  window.monkeyBroker = window.monkeyBroker || { loaded: true, push: noop };
})();
