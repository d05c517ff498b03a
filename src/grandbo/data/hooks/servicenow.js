// Business rule on the table `incident`: after insert and update, when the state, the close notes, the close code,
// the short description or the description changes. The secret of the hook is a system property, never part of the rule.
(function executeRule(current, previous) {
  var names = ['sys_id', 'number', 'short_description', 'description', 'state', 'close_code', 'close_notes',
    'resolved_at', 'impact', 'urgency', 'priority', 'category', 'subcategory', 'problem_id',
    'sys_created_on', 'sys_updated_on'];
  var record = {};
  names.forEach(function (name) { record[name] = current.getValue(name) || ''; });
  record.cmdb_ci = current.getDisplayValue('cmdb_ci') || '';
  record.business_service = current.getDisplayValue('business_service') || '';

  var request = new sn_ws.RESTMessageV2();
  request.setHttpMethod('post');
  request.setEndpoint(gs.getProperty('grandbo.hook_url'));
  request.setRequestHeader('Authorization', 'Bearer ' + gs.getProperty('grandbo.hook_secret'));
  request.setRequestHeader('Content-Type', 'application/json');
  request.setRequestBody(JSON.stringify({
    grandbo_template: '1',
    url: gs.getProperty('glide.servlet.uri') + current.getLink(true),
    previous_state: previous ? previous.getValue('state') || '' : '',
    record: record
  }));
  request.executeAsync();
})(current, previous);
