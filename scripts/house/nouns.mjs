// The technical nouns of comments.

/**
 * Terms of the glossary. Left out are terms with a common second meaning in plain English (call, turn, step, branch,
 * command, owner, send, trace, line): the count cannot distinguish the two.
 */
const GLOSSARY = `
  agent artifact channel checkpoint delta edge effect engine epoch event fallback graph inbox interrupt journal
  kernel ledger machine message middleware migration model namespace node plugin reducer registry run session
  snapshot state store subgraph superstep task thread timer tool transition
`;

/** Words that the writing guide lists as known to any engineer. */
const LISTED = `
  buffer cache callback error file hash index key lock option process promise queue retry row schema signal stream
  string timeout token transaction value
`;

/**
 * More of that sort. The list is calibrated: with it the tree before the redesign and six codebases of the field read
 * about as in the table of the writing guide. Words of plain English (name, number, result, input, default, user) stay
 * out, or the range of the row means nothing.
 */
const GENERAL = `
  argument array backoff bigint boolean bundler charset checksum ciphertext closure codec compiler concurrency
  config configuration constructor context cookie coroutine cursor daemon database deadlock debounce debugger
  decoder decorator deserializer digest encoder encryption endpoint enum enumeration exception fsync function getter
  handler header heap idempotency identifier integer interface iterable iteration iterator jitter keyword lambda
  latency listener logger metadata method microtask module mutation mutex nonce oauth observable observer packet
  parameter parser payload plaintext pointer polling polyfill predicate protocol proxy query regex request response
  rollback route router savepoint scheduler semaphore serialization serializer socket sql stack stderr stdin stdout
  subprocess subscriber subscription subtype surrogate syntax telemetry throttle throughput timestamp tokenizer
  tracer transpiler tuple unicode upsert uuid validator webhook websocket worker workflow wrapper
`;

const NOUNS = new Set(`${GLOSSARY} ${LISTED} ${GENERAL}`.trim().split(/\s+/));

/** Accepts a word in lower case, singular or plural. */
export function isTechnicalNoun(word) {
  if (NOUNS.has(word)) return true;
  if (word.endsWith("ies") && NOUNS.has(`${word.slice(0, -3)}y`)) return true;
  if (word.endsWith("es") && NOUNS.has(word.slice(0, -2))) return true;
  return word.endsWith("s") && NOUNS.has(word.slice(0, -1));
}
