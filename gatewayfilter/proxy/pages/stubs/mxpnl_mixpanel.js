// Mixpanel: people are not counted.
(function () {
  "use strict";
  var noop = function () {};
  var mixpanel = { people: {}, cookie: {}, persistence: {} };
  ("add_group alias clear_opt_in_out_tracking disable group has_opted_in_tracking has_opted_out_tracking identify name_tag opt_in_tracking opt_out_tracking " +
    "push register register_once remove_group reset set_config set_group start_batch_senders stop_batch_senders time_event track_pageview " +
    "track_with_groups unregister").split(" ").forEach(function (name) { mixpanel[name] = noop; });
  ("append clear_charges delete_user increment remove set set_once track_charge union unset").split(" ").forEach(function (name) { mixpanel.people[name] = noop; });
  function tell(parts) {
    var last = parts[parts.length - 1];
    if (typeof last === "function") { setTimeout(function () { last(1); }, 1); }
  }
  mixpanel.track = mixpanel.track_links = mixpanel.track_forms = function () { tell(arguments); };
  mixpanel.get_config = mixpanel.get_property = noop;
  mixpanel.get_distinct_id = function () { return ""; };
  mixpanel.get_group = function () { return mixpanel.people; };
  mixpanel.init = function (_, options) {
    if (options && typeof options.loaded === "function") { setTimeout(function () { options.loaded(mixpanel); }, 1); }
    return mixpanel;
  };
  var queued = window.mixpanel && window.mixpanel._i;
  window.mixpanel = mixpanel;
  (Array.isArray(queued) ? queued : []).forEach(function (call) { mixpanel.init(call[0], call[1]); });
})();
