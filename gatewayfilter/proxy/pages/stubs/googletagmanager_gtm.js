// The data layer of Google Tag Manager and gtag.js: nothing is sent, callbacks are called, hidden pages shown.
(function () {
  "use strict";
  var noop = function () {};
  var layer = window.dataLayer = Array.isArray(window.dataLayer) ? window.dataLayer : [];
  function settle(item) {
    if (!item || typeof item !== "object") { return; }
    var command = typeof item.length === "number" ? item : [item];
    Array.prototype.forEach.call(command, function (part) {
      ["eventCallback", "event_callback"].forEach(function (key) {
        if (part && typeof part[key] === "function") { setTimeout(part[key], 1); }
      });
    });
    if (command[0] === "get" && typeof command[3] === "function") { setTimeout(command[3], 1); }
  }
  var push = layer.push;
  layer.push = function () {
    Array.prototype.forEach.call(arguments, settle);
    return push.apply(layer, arguments);
  };
  layer.slice().forEach(settle);
  if (layer.hide && typeof layer.hide.end === "function") { layer.hide.end(); }
  window.google_tag_manager = window.google_tag_manager || {};
  window.ga = window.ga || noop;
})();
