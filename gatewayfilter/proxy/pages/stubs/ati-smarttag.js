// AT Internet SmartTag: tags without a collector.
(function () {
  "use strict";
  var noop = function () {};
  function part() { return { set: noop, send: noop, add: noop, reset: noop, update: noop, dispatch: noop, emit: noop, on: noop }; }
  function Tag() {
    var tag = this;
    ("cart cartAwaitingPayment clickListener context customTreeStructure customVars dynamicLabel events identifiedVisitor internalSearch location " +
      "mediaTracking mvTesting order page privacy products publisher rich richMedia selfPromotion user visitor").split(" ").forEach(function (name) { tag[name] = part(); });
    tag.click = { send: function (options) { if (options && typeof options.callback === "function") { setTimeout(options.callback, 1); } return true; } };
    tag.dispatch = tag.dispatchRedirect = function (options) { if (options && typeof options.callback === "function") { setTimeout(options.callback, 1); } return true; };
    tag.setProp = tag.setProps = tag.setConfig = tag.delProp = tag.delProps = tag.emit = tag.onTrigger = tag.setParam = noop;
    tag.getContext = tag.getConfig = function () { return {}; };
    tag.processTagObject = noop;
  }
  window.ATInternet = { Tracker: { Tag: Tag, instances: [] }, Utils: { consentReceived: noop } };
})();
