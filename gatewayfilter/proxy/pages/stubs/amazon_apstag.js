// Amazon Publisher Services: auctions that end at once without bids.
(function () {
  "use strict";
  var noop = function () {};
  function later(callback, value) { if (typeof callback === "function") { setTimeout(function () { callback(value); }, 1); } }
  var queued = (window.apstag && window.apstag._Q) || [];
  var apstag = { _Q: { push: function (item) { run(item); } }, init: function (_, callback) { later(callback); }, debug: noop, deleteId: noop,
    renderImp: noop, rpa: noop, setDisplayBids: noop, upa: noop, dpa: noop, punt: noop, updateId: noop,
    fetchBids: function (_, callback) { later(callback, []); return Promise.resolve([]); }, targetingKeys: function () { return []; },
    nativePlacement: function () { return null; }, thirdPartyData: {} };
  function run(item) {
    if (!item) { return; }
    var parts = item[1] || [];
    if (item[0] === "f") { apstag.fetchBids.apply(apstag, parts); }
    if (item[0] === "i") { apstag.init.apply(apstag, parts); }
  }
  window.apstag = apstag;
  queued.forEach(run);
})();
