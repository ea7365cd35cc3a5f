// A player's advertising module: present, without effect.
(function () {
  "use strict";
  var noop = function () {};
  window.hdMain = window.hdMain || { init: noop, destroy: noop };
})();
