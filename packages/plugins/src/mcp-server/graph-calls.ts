/**
 * Graphs as MCP calls: a call begins or goes on with a thread of the store. A thread that was cut short, by a crash or by a
 * client that has gone, goes on where it stood; nothing that is recorded is done again.
 */
import { createHash, randomUUID } from "node:crypto";
import type { CallToolResult, InputRequiredResult, Tool as McpTool } from "@modelcontextprotocol/server";
import {
  type Graph,
  getState,
  isStatewrightError,
  type JsonObject,
  listRuns,
  type Message,
  type OpenInterrupt,
  type RunHandle,
  type RunResult,
  type RunRow,
  resume,
  run,
  type SecretSource,
  type Store,
  textOf,
  type World,
} from "@statewright/core";
import { annotationsOf } from "./annotations.ts";
import { type CallRequest, hasLostClient, tellProgress } from "./call-request.ts";
import { forCaller, isThreadName, storedThread, threadNameRule } from "./caller.ts";
import { failure, structured, textBlock } from "./content.ts";
import { answersIn, askFor, isForPeople } from "./interrupt-forms.ts";
import type { McpLimits } from "./limits.ts";
import type { OfferedGraph } from "./offer-graph.ts";
import { lineOfGraph } from "./progress.ts";

/** What calls of graphs need. */
export interface GraphCallOptions {
  readonly graphs: readonly OfferedGraph[];
  readonly secrets: SecretSource | undefined;
  readonly store: Store;
  readonly limits: McpLimits;
  readonly world: World;
}

/** Calls of graphs from outside. */
export interface GraphCalls {
  readonly list: () => readonly McpTool[];
  readonly has: (name: string) => boolean;
  readonly call: (name: string, args: unknown, request: CallRequest) => Promise<CallToolResult | InputRequiredResult>;
  /** Let every run come to the end of its superstep; resolves when all are saved. */
  readonly close: () => Promise<void>;
}

type Ended = RunResult<object>;
type Answer = CallToolResult | InputRequiredResult;

/** One thread of one graph, as the client that calls knows it. */
interface Place {
  readonly offered: OfferedGraph;
  /** The name that the client uses. */
  readonly thread: string;
  /** The id in the store. */
  readonly stored: string;
  readonly request: CallRequest;
}

/** So many threads are remembered as those whose last outcome was told. */
const mostTold = 10_000;

/** Make graphs callable from outside. */
export function graphCalls({ graphs, secrets, store, limits, world }: GraphCallOptions): GraphCalls {
  const byName = new Map(graphs.map((offered) => [offered.name, offered]));
  const atWork = new Map<string, RunHandle<object>>();
  /** The run whose end was told last, by thread: the same call again is then a new one. */
  const told = new Map<string, string>();

  async function call(name: string, args: unknown, request: CallRequest): Promise<Answer> {
    const hostile = hostileKeyIn(args);
    if (hostile !== undefined) return failure(`The arguments of "${name}" have the key "${hostile}".`);
    const { thread, ...given } = (args ?? {}) as Readonly<Record<string, unknown>>;
    const goesOn = byName.get(name) === undefined;
    const offered = byName.get(goesOn ? name.slice(0, -continued.length) : name);
    if (offered === undefined) return failure(`There is no tool "${name}".`);
    const chosen = request.state ?? thread ?? (goesOn ? undefined : `t_${randomUUID()}`);
    if (!isThreadName(chosen)) return failure(`The thread of "${name}" is no name: use ${threadNameRule}.`);
    const place: Place = {
      offered,
      thread: chosen,
      stored: storedThread(request.caller, offered.name, chosen),
      request,
    };
    try {
      if (request.state !== undefined) return await goOnAnswered(place);
      if (!goesOn) return await begin(place, given);
      return await goOn(place, given["answers"]);
    } catch (error) {
      return failed(place, error);
    }
  }

  /** Begin with an input, or go on with the run that began with the same one and has not told its end. */
  async function begin(place: Place, args: Readonly<Record<string, unknown>>): Promise<Answer> {
    const { offered, stored, request } = place;
    const input = offered.given(args);
    const digest = digestOf(args);
    const last = await lastRun(stored);
    if (last !== undefined && last.status !== "cancelled") {
      const isSame = last.metadata?.["input"] === digest;
      if (isSame && (last.status !== "done" || told.get(stored) !== last.id)) return goOn(place, undefined);
      if (last.status !== "done") return failure(busy(place, last));
    }
    return follow(place, () =>
      run(offered.graph, {
        ...usual(place),
        input: input as object,
        metadata: { mcp: request.caller.id, tool: offered.name, input: digest },
      }),
    );
  }

  /** Go on with what stands, with answers that the host gives by itself. */
  async function goOn(place: Place, answers: unknown): Promise<Answer> {
    const { offered, stored, request } = place;
    const present = atWork.get(stored);
    if (present !== undefined) {
      if (answers !== undefined) return failure(`${named(place)} is at work, and asks nothing now.`);
      const stopTelling = tellProgress(present, request, lineOfGraph);
      return ended(place, await present.result.finally(stopTelling));
    }
    if ((await lastRun(stored)) === undefined)
      return failure(`There is no thread "${place.thread}" of "${offered.name}".`);
    if (answers === undefined) return follow(place, () => resume(offered.graph, usual(place)));
    if (!isObject(answers)) return failure("The answers are no object: give them by the ids of the questions.");
    const meant = meantBy(offered, await openQuestions(place), answers);
    if (typeof meant === "string") return failure(meant);
    return follow(place, () => resume(offered.graph, { ...usual(place), answers: meant, by: request.caller.id }));
  }

  /** Go on with what people filled in. Where they left a question open, the run waits as it did. */
  async function goOnAnswered(place: Place): Promise<Answer> {
    const { offered, request } = place;
    const questions = await openQuestions(place);
    const { answers } = answersIn(questions, request.responses);
    if (Object.keys(answers).length === 0) return waits(place, questions);
    return follow(place, () => resume(offered.graph, { ...usual(place), answers, by: request.caller.id }));
  }

  function usual({ offered, stored, request }: Place) {
    const context = forCaller(offered.context, request.caller);
    const toolUpdates = request.progress !== undefined;
    return { store, thread: stored, context, world, toolUpdates, ...(secrets === undefined ? {} : { secrets }) };
  }

  async function lastRun(stored: string): Promise<RunRow | undefined> {
    const [last] = await listRuns(store, { thread: stored, limit: 1 });
    return last;
  }

  async function openQuestions({ offered, stored }: Place): Promise<readonly OpenInterrupt[]> {
    const { interrupts } = await getState(offered.graph, { store, thread: stored });
    return interrupts;
  }

  /** Run to the end for now. A cancel ends the run, a client that has gone or a call that takes too long lets it rest. */
  async function follow(place: Place, start: () => RunHandle<object>): Promise<Answer> {
    const { stored, request } = place;
    const { signal } = request;
    // Two calls may have looked at the same moment, when nothing was at work.
    if (atWork.has(stored)) return failure(`${named(place)} is at work already. ${howToGoOn(place)}`);
    const handle = start();
    atWork.set(stored, handle);
    const stopTelling = tellProgress(handle, request, lineOfGraph);
    const rest = (why: string): void => {
      handle.drain(why);
      world.log("info", `a run rests at its next step: ${why}`, { thread: stored });
    };
    const stop = (): void => {
      if (hasLostClient(signal)) rest("its client has gone");
      else handle.cancel("the client cancelled the call");
    };
    const stopTimer = world.schedule.after(limits.callMs, () => rest("its call took too long"));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    try {
      return ended(place, await handle.result);
    } finally {
      stopTimer();
      stopTelling();
      signal.removeEventListener("abort", stop);
      if (atWork.get(stored) === handle) atWork.delete(stored);
    }
  }

  function ended(place: Place, result: Ended): Answer {
    const { offered, thread, stored, request } = place;
    if (result.status === "waiting") {
      const asks = request.canAsk ? askFor(offered.name, result.interrupts, thread) : undefined;
      return asks ?? waits(place, result.interrupts);
    }
    if (result.status === "done") {
      remember(stored, result.run);
      return answerOf(place, result);
    }
    const why = result.status === "paused" ? `: ${result.cause.message}` : "";
    return reported(place, result.status, [`${named(place)} is ${result.status}${why}. ${howToGoOn(place)}`]);
  }

  function remember(stored: string, id: string): void {
    told.delete(stored);
    told.set(stored, id);
    for (const oldest of told.keys()) {
      if (told.size <= mostTold) return;
      told.delete(oldest);
    }
  }

  function answerOf(place: Place, { output, state }: Extract<Ended, { readonly status: "done" }>): CallToolResult {
    const { offered } = place;
    const spoken = offered.graph.output === undefined ? conversationIn(offered.graph, state) : undefined;
    if (spoken?.stopped !== undefined)
      return failure(`${offered.name} was stopped before it had an answer: ${spoken.stopped}. ${howToGoOn(place)}`);
    const given = spoken === undefined ? (output as JsonObject) : spoken.text;
    const text = typeof given === "string" ? given : JSON.stringify(given);
    if (Buffer.byteLength(text) > limits.resultBytes)
      return failure(`${named(place)} is done, and gave more than this server hands out.`);
    return reported(place, "done", [text, `\n${named(place)} is done. Give the thread to go on with it.`], {
      output: given,
    });
  }

  function waits(place: Place, questions: readonly OpenInterrupt[]): CallToolResult {
    const { offered } = place;
    const lines = questions.map((question) => {
      const forPeople = !mayAnswer(offered, question);
      const asked = `${question.key}: ${JSON.stringify(question.payload ?? null)}`;
      return forPeople
        ? `- A person must answer, where this server runs. ${asked}`
        : `- ${asked} Answer "${question.id}" by ${JSON.stringify(question.schema ?? {})}.`;
    });
    const how = `Call ${offered.name}${continued} with the thread${questions.some((each) => mayAnswer(offered, each)) ? " and the answers by their ids" : " when that is done"}.`;
    const listed = questions.map(({ id, key, payload, schema }) => ({ id, key, payload, schema }));
    return reported(place, "waiting", [`${named(place)} waits for answers.`, ...lines, how], { questions: listed });
  }

  function reported(
    { thread }: Place,
    status: string,
    texts: readonly string[],
    more: Readonly<Record<string, unknown>> = {},
  ): CallToolResult {
    const all = structured({ thread, status, ...more }, limits.resultBytes) ?? { thread, status };
    const [first = "", ...rest] = status === "waiting" ? [texts.join("\n")] : texts;
    return { content: [first, ...rest].map(textBlock), structuredContent: all };
  }

  function failed(place: Place, error: unknown): CallToolResult {
    if (isStatewrightError(error) && error.kind === "input") return failure(error.message);
    world.log("error", `a call of the graph "${place.offered.name}" failed`, { thread: place.stored, error });
    return failure(`${place.offered.name} failed before it had an answer. ${howToGoOn(place)}`);
  }

  return {
    list: () => graphs.flatMap((offered) => [beginTool(offered), continueTool(offered)]),
    has: (name) => byName.has(name) || (name.endsWith(continued) && byName.has(name.slice(0, -continued.length))),
    call,
    close: async () => {
      const running = [...atWork.values()];
      for (const handle of running) handle.drain("the server stops");
      await Promise.allSettled(running.map(({ result }) => result));
    },
  };
}

/** The second tool of each graph: `name_continue`. */
const continued = "_continue";

function named({ thread, offered }: Place): string {
  return `Thread "${thread}" of ${offered.name}`;
}

function howToGoOn({ thread, offered }: Place): string {
  return `Call ${offered.name}${continued} with the thread "${thread}" to go on.`;
}

function busy(place: Place, { status }: RunRow): string {
  return `${named(place)} has a run that is ${status}. ${howToGoOn(place)} Or give another thread.`;
}

function mayAnswer({ hostMayAnswer }: OfferedGraph, question: OpenInterrupt): boolean {
  return hostMayAnswer === "all" || (hostMayAnswer === "questions" && !isForPeople(question));
}

/** Answers of a host by the ids of questions that are open and that it may answer; or why they are not taken. */
function meantBy(
  offered: OfferedGraph,
  questions: readonly OpenInterrupt[],
  given: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | string {
  const answers: Record<string, unknown> = {};
  for (const [name, answer] of Object.entries(given)) {
    const [question, another] = questions.filter(({ id, key }) => id === name || key === name);
    if (question === undefined) return `No question ${JSON.stringify(name)} is open.`;
    if (another !== undefined) return `Several questions "${name}" are open: answer them by their ids.`;
    if (!mayAnswer(offered, question)) return `"${question.key}" is for a person to answer, and not by this call.`;
    answers[question.id] = answer;
  }
  return answers;
}

/** The last words of a conversation, or why it ended without any; nothing for a graph that is none. */
function conversationIn(
  { state }: Graph,
  ended: object,
): { readonly text: string; readonly stopped?: string | undefined } | undefined {
  if (state.channels["messages"]?.kind !== "messages") return undefined;
  const all = (ended as { readonly messages?: readonly Message[] }).messages ?? [];
  const last = all.at(-1);
  if (last === undefined) return { text: "" };
  const by = last.role === "assistant" ? last.ended : undefined;
  if (by === undefined || by.by === "answer") return { text: textOf(last) };
  return { text: textOf(last), stopped: by.reason ?? `it was ended by ${by.by}` };
}

function beginTool({ name, spec, input }: OfferedGraph): McpTool {
  const properties = { ...(input["properties"] as JsonObject | undefined), thread: threadProperty };
  return {
    name,
    title: spec.label,
    description: spec.description,
    inputSchema: { ...(input as McpTool["inputSchema"]), properties },
    outputSchema,
    annotations: annotationsOf(spec),
  };
}

function continueTool({ name, spec }: OfferedGraph): McpTool {
  const label = `${spec.label}: go on`;
  return {
    name: name + continued,
    title: label,
    description: `Go on with a thread of ${name} that was cut short, failed, or waits for answers; or read how it ended. Does nothing twice that is recorded.`,
    inputSchema: {
      type: "object",
      properties: {
        thread: { type: "string", description: "The thread, as a result told it." },
        answers: { type: "object", description: "Answers by the ids of the questions that a result told." },
      },
      required: ["thread"],
      additionalProperties: false,
    },
    outputSchema,
    annotations: annotationsOf({ ...spec, label }),
  };
}

const threadProperty = {
  type: "string",
  description: `To go on with a conversation: the thread that a result told. Or a name of your own for a new one (${threadNameRule}), by which it is found again after a break.`,
};

const outputSchema: NonNullable<McpTool["outputSchema"]> = {
  type: "object",
  properties: {
    thread: { type: "string" },
    status: { type: "string" },
    output: {},
    questions: { type: "array", items: { type: "object" } },
  },
  required: ["thread", "status"],
};

/** A digest of arguments: the same for the same values, whatever the order of their keys. */
function digestOf(args: unknown): string {
  const sorted = JSON.stringify(args, (_key, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
  return createHash("sha256").update(sorted).digest("hex");
}

/** A key that leads to the prototype of an object wherever somebody copies it without care. Messages are not deep. */
function hostileKeyIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, part] of Object.entries(value)) {
    if (key === "__proto__" || key === "constructor" || key === "prototype") return key;
    const found = hostileKeyIn(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
