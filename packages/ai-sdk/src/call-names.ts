/**
 * Call ids and tool names in the format of a provider: a history may come from another provider with another id
 * format.
 */
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

const validName = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns the id of a call for `client`: unchanged if valid, otherwise a deterministic substitute. */
export function toProviderCallId(client: string, id: string): string {
  const rule = idRules.find((candidate) => candidate.client.test(client));
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

/** Returns an allocator of unique call ids: an unused id stays unchanged, a used id gets a numeric suffix. */
export function createIdAllocator(taken: Iterable<string>): (id: string) => string {
  const used = new Set(taken);
  return (id) => {
    const base = id === "" ? "call" : id;
    let free = base;
    for (let count = 2; used.has(free); count++) free = `${base}_${count}`;
    used.add(free);
    return free;
  };
}
