// The verbs of function names. Extend the list with any word of the trade that takes an object.

/** Prefixes of predicates and conversions read as verbs: `isOpen`, `hasKey`, `toJson`, `fromRow`. */
const PREFIXES = ["is", "has", "can", "should", "to", "from"];

/**
 * Imperatives only: no participles (`told`) and no third person (`keeps`). Left out are words that a name uses
 * chiefly as a noun or an adjective (state, type, output, page, name, place, free), and verbs of conversation that
 * have no technical meaning (tell, say, settle, heed, stand).
 */
const IMPERATIVES = `
  abort accept accumulate ack acknowledge acquire activate adapt add adjust admit adopt advance advertise aggregate
  align allocate allow alter amend analyse analyze annotate announce answer append apply approve archive arm arrange
  ask assemble assert assign associate assume attach attempt audit augment authenticate authorise authorize await
  backfill balance batch begin bind blend block bootstrap branch break bring broadcast buffer build bump bundle
  bypass
  cache calculate calibrate call cancel cap capitalise capitalize capture carry cast catch categorise categorize
  change charge check chmod choose chown chunk claim clamp classify clean clear clip clone close coalesce coerce
  collapse collect combine commit compact compare compile complete compose compress compute concat concatenate
  conclude configure confine confirm connect consolidate construct consume contain continue convert coordinate copy
  correct count cover create credit crop customise customize cut cycle
  deactivate debit debounce debug decide declare decline decode decompose decompress decorate decrease decrement
  decrypt dedupe deduplicate defer define deflate delay delegate delete deliver demote demultiplex denormalize deny
  deploy deprecate dequeue derive describe deselect deserialise deserialize destroy destructure detach detect
  determine diff digest disable disarm disassemble discard discharge disconnect discover dispatch display dispose
  dissolve distribute divide do dock downcast downgrade download drain draw drive drop dump duplicate
  edit elect elevate eliminate embed emit empty emulate enable encapsulate encode encrypt end enforce enqueue enrich
  ensure enter enumerate erase escape establish estimate evaluate evict examine excerpt exclude execute exercise
  exit expand expect expire explain explore export expose express extend extract extrude
  fail fake fan fence fetch fill filter finalize find fingerprint finish fire fix flag flatten flip flush fold
  follow forbid force fork format forward freeze fsync fulfill fuzz
  gather generate get give go goto grant group grow guard guess guide
  halt handle hash hibernate hide highlight hoist hold hydrate
  identify ignore impersonate import increase increment indent index infer inflate inform ingest inherit init
  initialise initialize inject inline insert inspect install instantiate integrate intercept interleave interpolate
  interpret interrupt intersect intersperse introduce invalidate invert invoke isolate issue iterate
  join journal jsonify judge jump justify
  keep kill know
  label launch lay lead learn leave let lex lift limit linearize link lint list listen load localize locate lock log
  lower lowercase
  maintain make manage mangle map mark mask match materialise materialize maximise maximize measure mediate memoise
  memoize mention merge migrate minify minimise minimize mint mirror mkdir mock modify monitor mount move multiplex
  multiply mutate mute
  nack narrow navigate negate negotiate nest normalise normalize note notify
  obfuscate observe obtain offer omit open optimise optimize orchestrate order organize overlay override overwrite
  pack pad paginate paint parameterize parametrize park parse partition pass paste patch pause peek perform permit
  persist perturb pick pin ping pipe plan play plot pluralize poke poll pop populate position post postpone
  precompute predict preempt prefer prefetch preload prepare prepend prerender preserve presign presume prevent
  preview print prioritise prioritize probe proceed process produce prohibit project promote propagate propose
  protect prove provide provision proxy prune pry publish pull purge push put
  qualify quantize quarantine query queue quiesce quit quote
  race raise randomize rank reach reacquire read realign realize rearm reassign reattach rebase rebind rebuild
  recall receive recognize recompute reconcile reconfigure reconnect reconstitute reconstruct record recover
  recreate recurse recycle redact redeem redefine redeliver redirect redo reduce reencrypt ref refer refine reflect
  reflow reformat refresh refuse regenerate register rehash rehydrate reindex reinstate reinvoke reissue reject
  relate relax relay release relink relist reload remap remember remind remount remove remux rename render renew
  renumber reopen reorder repack repair repeat replace replan replay replicate reply repopulate report represent
  reproduce republish request require rerun resample rescale reschedule rescue resend reserve reset reshape resize
  resolve respawn respond restart restore restrict resubmit resume resync retag retain retarget rethrow retract
  retrieve retry return retype reuse revalidate reverse revert review revise revive revoke rewind rewrite roll
  rotate round route rsync run
  salt sample sanitise sanitize satisfy save scaffold scale scan schedule score scrape scrub seal search secure seed
  seek select send separate serialise serialize serve set shard share shift show shrink shuffle shut sign signal
  simplify simulate skip sleep slice slow slugify snapshot snip sort spawn specify speed spend splice split spoil
  spread spy stabilize stall stamp start stat stem stop store stream strengthen stringify strip stub subdivide
  submit subscribe substitute subtract suggest sum summarise summarize supersede supervise supply support suppress
  suspend swallow swap sweep switch symlink sync synchronize synthesize
  tag take tally tap tear tee terminate test think throttle throw tile toggle tokenise tokenize tombstone touch
  trace track transact transcribe transfer transform transition translate transmit transpile transpose traverse
  treat triage trigger trim truncate trust try tune
  unbind unblock underline undo unescape unfold unify uninstall unlink unload unlock unmount unnest unpack unpark
  unpause unpin unref unregister unroll unseal unset unshift unstack unstage unsubscribe untar untrack unwatch
  unwind unwrap unzip upcast update upgrade upload uppercase upsert use
  vacuum validate vary vend verify vet view visit visualise
  wait wake walk warm warn watch weigh widen withdraw withhold withstand wrap write
  yield
  zip
`;

export const VERBS = new Set([...PREFIXES, ...IMPERATIVES.trim().split(/\s+/)]);
