// Didomi's consent API: nobody was asked, and nothing was agreed to.
(function () {
  "use strict";
  var noop = function () {};
  var none = { enabled: [], disabled: [] };
  var user = { user_id: "", created: "", updated: "", consent_string: "", purposes: { consent: none, legitimate_interest: none, global: none, essential: [] },
    vendors: { consent: none, legitimate_interest: none, global: none, global_consent: none, global_li: none } };
  function no() { return false; }
  var didomi = { notice: { show: noop, hide: noop, isVisible: no }, preferences: { show: noop, hide: noop, isVisible: no }, on: noop,
    getCurrentUserStatus: function () { return user; }, getUserStatus: function () { return user; }, getUserConsentStatusForAll: function () { return user; },
    getUserConsentStatusForPurpose: no, getUserConsentStatusForVendor: no, getUserConsentStatus: no, getObservableOnUserConsentStatusForVendor: function () {
      var chain = { filter: function () { return chain; }, distinctUntilChanged: function () { return chain; }, first: function () { return chain; }, subscribe: noop };
      return chain;
    }, isConsentRequired: no, isUserConsentStatusPartial: no, isReady: function () { return true; }, shouldConsentBeCollected: no, setUserAgreeToAll: noop,
    setUserDisagreeToAll: noop, openTransaction: function () { return { enablePurpose: noop, enableVendor: noop, disablePurpose: noop, disableVendor: noop, commit: no }; },
    getConfig: function () { return {}; }, getVendors: function () { return []; }, getPurposes: function () { return []; }, reset: noop };
  window.Didomi = window.Didomi || didomi;
  function run(callback) { if (typeof callback === "function") { setTimeout(function () { callback(window.Didomi); }, 1); } }
  var queued = window.didomiOnReady;
  window.didomiOnReady = { push: run };
  (Array.isArray(queued) ? queued : []).forEach(run);
  window.didomiEventListeners = window.didomiEventListeners || [];
})();
