/**
 * Node cache lookup: a cached result replaces the run of the node's body. A failure of the cache counts as a miss and
 * never fails the run.
 */

import { describeThrown, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { hashSha256 } from "../../base/hash-sha256.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { END } from "../../define/edge.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { CacheEntry, NodeCache } from "../../define/node-cache.ts";
import { encodeWrapper } from "../../state/codec.ts";
import { sortKeys } from "../journal/args-digest.ts";
import { subscribeToAbort } from "../session/abort.ts";
import type { Position } from "../session/parts/position.ts";
import { getTaskPlace } from "../session/parts/position.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import type { Signals } from "../session/parts/signals.ts";
import type { TaskOutcome } from "../session/returns.ts";
import { getRunIdentity } from "../session/scope.ts";
import type { Session } from "../session/session.ts";

type Policy = NonNullable<NodeRecord["policy"]["cache"]>;

/** Result of a cache lookup: the cached outcome, or a callback that stores the outcome of the body. */
export type CacheLookup =
  | { readonly kind: "hit"; readonly outcome: TaskOutcome }
  | { readonly kind: "miss"; readonly storeOutcome: (outcome: TaskOutcome) => void };

/** Looks up the cached result of a task. Throws when the cache key cannot be computed. */
export async function consultCache(
  session: Pick<Session, "env" | "position" | "progress" | "signals">,
  task: Task,
  policy: Policy,
): Promise<CacheLookup> {
  const { store } = policy;
  const key = await buildCacheKey(session, task, policy);
  if (key === undefined) return { kind: "miss", storeOutcome: () => undefined };
  const entry = await readEntry(session.signals, session.env.world, task, { store, key });
  const outcome = entry === undefined ? undefined : decodeOutcome(session.env, session.position, task, entry);
  if (outcome !== undefined) return { kind: "hit", outcome };
  return {
    kind: "miss",
    storeOutcome: (made) => storeResult(session.env, session.position, policy, { task, key, outcome: made }),
  };
}

/**
 * Builds the full key: graph, version, node, scope, then the user's key. Graph name, version and node name cannot
 * contain a slash. Undefined if the result has no known scope.
 */
async function buildCacheKey(
  { env, position, progress }: Pick<Session, "env" | "position" | "progress">,
  task: Task,
  { key, scope }: Policy,
): Promise<string | undefined> {
  const { name, version } = position.plan.graph;
  const input = task.input === undefined ? undefined : progress.control.inputs[task.input];
  const userKey = computePart(position, task, "key", () => key(progress.state as never, input as never));
  const scopeText =
    scope === undefined
      ? await digestContext(env, task)
      : JSON.stringify(
          computePart(position, task, "scope", () =>
            scope({ context: env.context, run: getRunIdentity(position, task) }),
          ),
        );
  return scopeText === undefined ? undefined : `${name}/${version}/${task.node}/${scopeText}/${userKey}`;
}

/**
 * Digests the context of the run: a body may read all of it. Empty without a context; undefined for a context that
 * cannot be encoded, such as one that holds a client.
 */
async function digestContext({ codec, context, world }: RunEnvironment, task: Task): Promise<string | undefined> {
  if (context === undefined) return "";
  try {
    const text = codec.encode(sortKeys(context), "the context of the run");
    return await hashSha256(text);
  } catch (error) {
    return logCacheFailure(world, task, "not used, because the context is not plain data; set cache.scope", error);
  }
}

/** Calls `cache.key` or `cache.scope` of a node. Throws when the function throws or returns no string. */
function computePart(position: Position, task: Task, part: "key" | "scope", compute: () => unknown): string {
  const value = callAuthor(position, task, part, compute);
  if (typeof value === "string") return value;
  ignoreRejections(value);
  throw invalidOption({
    where: `cache.${part} of the node "${task.node}"`,
    expected: "a string",
    got: value,
    fix: "Return a string, not a promise",
    place: getTaskPlace(position, task),
  });
}

function callAuthor(position: Position, task: Task, part: "key" | "scope", compute: () => unknown): unknown {
  try {
    return compute();
  } catch (cause) {
    const reads = part === "key" ? "the state and the input" : "the context and the ids of the run";
    throw new StatewrightError("node_failed", {
      what: `cache.${part} of the node "${task.node}" threw: ${describeThrown(cause)}`,
      next: `Fix cache.${part}, which gets ${reads}, then resume the thread`,
      place: getTaskPlace(position, task),
      cause,
    });
  }
}

/** Reads an entry from the cache. A cancelled run does not wait for the cache. */
function readEntry(
  signals: Signals,
  world: World,
  task: Task,
  { store, key }: { readonly store: NodeCache; readonly key: string },
): Promise<CacheEntry | undefined> {
  return new Promise((resolve) => {
    const { halt } = signals;
    if (halt.aborted) return resolve(undefined);
    const stopListening = subscribeToAbort(halt, () => resolve(undefined));
    Promise.resolve()
      .then(() => store.get(key))
      .then((entry) => {
        const { expiresAt = Number.POSITIVE_INFINITY } = entry ?? {};
        return world.clock.now() < expiresAt ? (entry ?? undefined) : undefined;
      })
      .catch((error: unknown) => logCacheFailure(world, task, "read failed", error))
      .then((entry) => {
        stopListening();
        resolve(entry);
      });
  });
}

function decodeOutcome(
  env: RunEnvironment,
  position: Position,
  task: Task,
  { text }: CacheEntry,
): TaskOutcome | undefined {
  const { graph, nodes } = position.plan;
  try {
    const outcome = deepFreeze(env.codec.decode(text)) as TaskOutcome;
    // The graph may have lost a channel or a node under the same version.
    const isCompatible =
      outcome.writes.every(({ channel }) => Object.hasOwn(graph.state.channels, channel)) &&
      outcome.routes.every(({ target }) => target === END || nodes.has(target));
    return isCompatible ? outcome : undefined;
  } catch (error) {
    logCacheFailure(env.world, task, "returned an entry that cannot be decoded", error);
    return undefined;
  }
}

/** Options of `storeResult`. */
interface StoreResultOptions {
  readonly task: Task;
  readonly key: string;
  readonly outcome: TaskOutcome;
}

/** Stores a result in the background: the task does not wait for the cache. */
function storeResult(
  env: RunEnvironment,
  position: Position,
  { ttlMs, store }: Policy,
  { task, key, outcome }: StoreResultOptions,
): void {
  Promise.resolve()
    .then(() => {
      const text = encodeWrapper(
        env.codec,
        toStorableOutcome(position, outcome),
        `the result of the node "${task.node}"`,
      );
      return store.put(key, {
        text,
        ...(ttlMs === undefined ? {} : { expiresAt: env.world.clock.now() + ttlMs }),
      });
    })
    .catch((error: unknown) => logCacheFailure(env.world, task, "write failed", error));
}

/**
 * Makes an outcome applicable to another state: replaces draft patches, which fit only their original state, with the
 * full value. Throws for untracked channels, whose values exist in this process only.
 */
function toStorableOutcome(position: Position, { writes, routes }: TaskOutcome): TaskOutcome {
  const { channels } = position.plan.graph.state;
  const untracked = writes.find((write) => channels[write.channel]?.kind === "untracked");
  if (untracked !== undefined)
    throw new TypeError(`the channel "${untracked.channel}" is untracked and cannot be cached`);
  return {
    writes: writes.map((write) =>
      write.kind === "draft" ? { channel: write.channel, kind: "reduce", value: write.value } : write,
    ),
    routes,
  };
}

function logCacheFailure(world: World, task: Task, what: string, error: unknown): undefined {
  world.log("warn", `cache of the node "${task.node}": ${what}`, {
    task: task.id,
    error: toErrorRecord(error),
  });
  return undefined;
}
