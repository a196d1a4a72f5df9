/**
 * Call ids and tool names in the format of a provider: a history may come from another provider with another id
 * format.
 */
import type { Message } from "@statewright/core";
import { fingerprint } from "@statewright/core/adapter";

/**
 * Accepted id formats, by client name. An unlisted client gets ids unchanged: some providers (e.g. Kimi) require
 * their own irregular ids.
 */
const idRules: readonly { readonly client: RegExp; readonly pattern: RegExp; readonly length: number }[] = [
  { client: /mistral/, pattern: /^[A-Za-z0-9]{9}$/, length: 9 },
  { client: /anthropic|bedrock/, pattern: /^[A-Za-z0-9_-]{1,64}$/, length: 64 },
  { client: /^(?:openai|azure).*\.chat$/, pattern: /^[A-Za-z0-9_.:-]{1,40}$/, length: 40 },
  { client: /^(?:openai|azure)/, pattern: /^[A-Za-z0-9_.:-]{1,64}$/, length: 64 },
];

type IdRule = (typeof idRules)[number];

const rulesByClient = new Map<string, IdRule | undefined>();

function findIdRule(client: string): IdRule | undefined {
  if (rulesByClient.has(client)) return rulesByClient.get(client);
  const rule = idRules.find((candidate) => candidate.client.test(client));
  rulesByClient.set(client, rule);
  return rule;
}

const validName = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns the id of a call for `client`: unchanged if valid, otherwise a deterministic substitute. */
export function toProviderCallId(client: string, id: string): string {
  const rule = findIdRule(client);
  if (rule === undefined || rule.pattern.test(id)) return id;
  const hash = fingerprint(id);
  if (rule.length < 20) return hash.slice(-rule.length);
  return `${id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, rule.length - hash.length - 1)}_${hash}`;
}

/**
 * Returns a tool name in the format of providers: a model may have called a tool by a name that every provider
 * rejects. A name that each object inherits, such as `constructor`, gets an underscore: clients look names up in plain
 * objects and would send no name.
 */
export function toProviderToolName(name: string): string {
  if (name in Object.prototype) return `${name}_`;
  if (validName.test(name)) return name;
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

/**
 * Returns an allocator of call ids that are unique in a conversation: an unused id stays unchanged, a used id gets a
 * numeric suffix.
 */
export function createIdAllocator(messages: readonly Message[]): (id: string) => string {
  const known = getKnownIds(messages);
  const added = new Set<string>();
  return (id) => {
    const base = id === "" ? "call" : id;
    let free = base;
    for (let count = 2; known.has(free) || added.has(free); count++) free = `${base}_${count}`;
    added.add(free);
    return free;
  };
}

/** Call ids of a conversation; messages are added as the conversation grows. */
interface KnownIds {
  readonly messages: Message[];
  readonly ids: Set<string>;
}

/** Newest list of each conversation, by its first message. */
const knownIds: WeakMap<Message, KnownIds> = new WeakMap();

/**
 * Returns the ids of the calls in the messages. Costs a single comparison per message of the list that the last request
 * of the conversation had, and reads the blocks of new messages only.
 */
function getKnownIds(messages: readonly Message[]): ReadonlySet<string> {
  const [first] = messages;
  if (first === undefined) return new Set();
  let known = knownIds.get(first);
  if (known === undefined || !isPrefix(known.messages, messages)) {
    known = { messages: [], ids: new Set() };
    // A message that can change is another conversation each time.
    if (Object.isFrozen(first)) knownIds.set(first, known);
  }
  for (let next = known.messages.length; next < messages.length; next++) {
    const message = messages[next] as Message;
    known.messages.push(message);
    if (message.role !== "assistant") continue;
    for (const block of message.content) if (block.type === "call") known.ids.add(block.id);
  }
  return known.ids;
}

/** Returns true if a list begins with the same messages. */
export function isPrefix(start: readonly Message[], messages: readonly Message[]): boolean {
  for (let index = 0; index < start.length; index++) if (start[index] !== messages[index]) return false;
  return true;
}
