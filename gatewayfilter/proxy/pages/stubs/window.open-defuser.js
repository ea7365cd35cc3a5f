// window.open() that opens nothing and returns a window that can be talked to.
(function () {
  "use strict";
  var noop = function () {};
  var closed = { closed: true, document: { write: noop, writeln: noop, open: noop, close: noop }, location: {}, opener: null, focus: noop, blur: noop, close: noop,
    moveTo: noop, resizeTo: noop, postMessage: noop, addEventListener: noop, removeEventListener: noop };
  window.open = function () { return closed; };
})();
