// Gemius: hits that are not sent.
(function () {
  "use strict";
  var noop = function () {};
  var shared = { gemius_cmd: noop, gemius_hit: noop, gemius_event: noop, gemius_init: noop, gemius_player: noop, pp_gemius_hit: noop, pp_gemius_event: noop,
    pp_gemius_init: noop };
  Object.keys(shared).forEach(function (name) { window[name] = shared[name]; });
  window.GemiusPlayer = function () { this.setVideoObject = this.newProgram = this.programEvent = this.adEvent = this.newAd = this.dispose = noop; };
})();
