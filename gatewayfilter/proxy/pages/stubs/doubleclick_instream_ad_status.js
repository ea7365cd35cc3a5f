// Tells players that ads could have been loaded.
(function () {
  "use strict";
  window.google_ad_status = 1;
})();
