/** What the hooks around models get: the state as they have written it, writes, questions to people, and the end of the agent. */

import { StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import type { AgentEnd, AssistantMessage, Message, Usage } from "../../model/message.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import {
  answerSchema,
  checkExpiry,
  type Expiry,
  expiryOf,
  type InterruptDeclaration,
} from "../../tool/policy/interrupt.ts";
import type { BesideCall, HookQuestion, Middleware, ModelHookRuntime } from "../../tool/policy/middleware.ts";
import { readPayload } from "../conversation/interrupt-payload.ts";
import { callOffStart } from "../journal/journal.ts";
import { longTermOfStep, recordChanges } from "../journal/long-term-writes.ts";
import { readHookWrites, stateAsWritten } from "../session/hook-writes.ts";
import type { State, Write } from "../session/returns.ts";
import { hookRuntime, type Question, type TaskScope } from "../session/scope.ts";
import { placeOf, type Session } from "../session/session.ts";
import { needStore } from "../task/attempt.ts";
import { onceMayNotAsk } from "../task/once.ts";
import { askBeside } from "./auxiliary-model-call.ts";

/** Hooks around one effect: what they have done so far. */
export interface HooksAtWork {
  readonly session: Session;
  readonly scope: TaskScope;
  /** The key of the effect. */
  readonly effect: string;
  readonly middleware: readonly Middleware[];
  /** What the task itself writes, where they are called behind that. */
  readonly said: readonly Write[];
  readonly writes: Write[];
  /** What they have asked of other models. */
  readonly beside: LostAttempt[];
  /** What they have put into the long-term store; nothing counts any more that comes after the last of them. */
  readonly longTerm: LongTermChange[];
  isOver: boolean;
  /** Ids of the questions, and keys of the models beside, that this pass of the hooks has asked. */
  readonly asked: Set<string>;
  /**
   * People are asked `before` anything was sent; who is called when the agent has `ended` does not end it again, and who is
   * called at an end that is `final` does not let it go on.
   */
  phase: "before" | "sent" | "ended" | "final";
  /** The id of the model that they stand around. */
  model: string | undefined;
  /** What gives back what they have reserved and not settled. */
  readonly held: Set<() => void>;
  ending: { readonly text: string; readonly ended: AgentEnd } | undefined;
}

/** Hooks that begin with the first. */
export function hooksAtWork(
  session: Session,
  scope: TaskScope,
  effect: string,
  phase: HooksAtWork["phase"],
  middleware: readonly Middleware[],
  said: readonly Write[] = [],
): HooksAtWork {
  const nothing = {
    writes: [],
    beside: [],
    longTerm: [],
    isOver: false,
    asked: new Set<string>(),
    model: undefined,
    ending: undefined,
  };
  const held = new Set<() => void>();
  return { session, scope, effect, middleware, said, phase, held, ...nothing };
}

/** Journal what hooks have put into the long-term store, before the outcome of the effect that they stand around. */
export function keepChanges(at: HooksAtWork): void {
  const { session, scope, effect, longTerm } = at;
  at.isOver = true;
  recordChanges(session, scope.task, effect, longTerm);
}

/** What one middleware's hooks get. */
export function runtimeFor(at: HooksAtWork, middleware: Middleware): ModelHookRuntime {
  const { session, scope } = at;
  const isOver = (): boolean => at.isOver || scope.ended();
  let seen: { readonly writes: number; readonly state: State } | undefined;
  return Object.defineProperty(
    {
      ...hookRuntime(session, scope, at.effect, middleware, at.held),
      model: at.model,
      write: (update: Readonly<Record<string, unknown>>) => {
        const writes = readHookWrites(session, scope, middleware, update);
        if (at.phase === "final") refuseWordsBehind(at, middleware, writes);
        at.writes.push(...writes);
      },
      end: (text: string, ended: AgentEnd): undefined => {
        at.ending ??= readEnding(at, middleware, text, ended);
      },
      ask: (key: string, call: BesideCall) => askBeside(at, middleware, key, call),
      longTerm: (...ids: readonly string[]) => longTermOfStep(session, scope, ids, at.longTerm, isOver),
      interrupt: ((key: string, question?: HookQuestion) =>
        ask(at, middleware, key, question)) as ModelHookRuntime["interrupt"],
    },
    "state",
    {
      enumerable: true,
      get: () => {
        if (seen?.writes !== at.writes.length)
          seen = { writes: at.writes.length, state: stateAsWritten(session, scope, [...at.said, ...at.writes]) };
        return seen.state;
      },
    },
  );
}

/** Give back what was reserved for an effect that did not come to its end. */
export function giveBack({ held }: HooksAtWork): void {
  for (const release of [...held]) release();
}

/** The answer that ends the agent in the model's place. What a reply has cost that is dropped for it stays with it. */
export function endingMessage(
  { text, ended }: NonNullable<HooksAtWork["ending"]>,
  id: string,
  usage?: Usage,
): AssistantMessage {
  return {
    role: "assistant",
    id,
    content: [{ type: "text", text }],
    finish: "stop",
    ...(usage === undefined ? {} : { usage }),
    ended,
  };
}

function readEnding(at: HooksAtWork, { name }: Middleware, text: unknown, ended: unknown): HooksAtWork["ending"] {
  const { by, reason } = isPlainObject(ended) ? ended : {};
  const fits = typeof text === "string" && typeof by === "string" && ["string", "undefined"].includes(typeof reason);
  if (fits && at.phase !== "ended" && at.phase !== "final") {
    checkOptions(`the end by the middleware "${name}"`, ended, ["by", "reason"]);
    return { text, ended: { by, ...(typeof reason === "string" ? { reason } : {}) } };
  }
  disregardPromises(text);
  throw new StatewrightError("invalid_option", {
    what: fits
      ? `the middleware "${name}" ended an agent that has ended`
      : `the middleware "${name}" ended the agent with ${describeValue(text)} and ${describeValue(ended)}`,
    next: fits
      ? "Write to its messages, or return { messages } to let it go on"
      : 'Give end("the text of the answer", { by: "who", reason: "why" })',
    place: placeOf(at.session, { node: at.scope.task.node }),
  });
}

/** A message behind an end that a hook or a limit has made would let the agent go on all the same. */
function refuseWordsBehind(
  { session, scope, said, writes: before }: HooksAtWork,
  { name }: Middleware,
  writes: readonly Write[],
): void {
  const messages = stateAsWritten(session, scope, [...said, ...before, ...writes])["messages"] as readonly Message[];
  if (endOf(messages) !== undefined) return;
  const by = endOf(stateAsWritten(session, scope, said)["messages"] as readonly Message[])?.by;
  throw new StatewrightError("invalid_update", {
    what: `the middleware "${name}" wrote messages behind the end of an agent by "${by}", which is final`,
    next: "Change the message that ends it, or look at ended.by and write behind an answer only",
    place: placeOf(session, { node: scope.task.node, channel: "messages" }),
  });
}

/** The end that a hook or a limit has made, where the conversation ends with it. */
export function endOf(messages: readonly Message[]): AgentEnd | undefined {
  const last = messages[messages.length - 1];
  return last?.role === "assistant" ? last.ended : undefined;
}

async function ask(at: HooksAtWork, middleware: Middleware, key: string, asking: HookQuestion = {}): Promise<unknown> {
  const { session, scope, effect } = at;
  let question: Question;
  try {
    question = readQuestion(at, middleware, key, asking);
  } catch (error) {
    giveBack(at);
    callOffStart(session, scope.task, effect);
    return scope.refuse(error);
  }
  const found = scope.consult(question);
  if ("answer" in found) return found.answer;
  // Nothing was sent: the effect begins when the answer is there.
  giveBack(at);
  callOffStart(session, scope.task, effect);
  return scope.suspend([found.open]);
}

function readQuestion(at: HooksAtWork, middleware: Middleware, key: string, asking: HookQuestion): Question {
  const { name, inherited } = middleware;
  const { session, scope, effect, asked } = at;
  const { task } = scope;
  const owner = `the interrupt ${describeValue(key)} of the middleware "${name}"`;
  if (at.phase !== "before") throw tooLate(at, owner);
  checkOptions(owner, asking, ["payload", "expiresMs", "onExpire"]);
  const declared = declaredFor(at, name, key);
  if (scope.node.policy.effect === "once") throw onceMayNotAsk(session, task, key);
  const { codec } = needStore(session, task, key, asking.payload);
  const payload = readPayload(
    `the middleware "${name}"`,
    key,
    declared,
    asking.payload,
    placeOf(session, { node: task.node }),
  );
  codec.encode(payload, `the payload of ${owner}`);
  const own = inherited === true ? `${name}:${key}` : `${task.id}/${effect}/${name}:${key}`;
  let id = own;
  for (let nth = 2; asked.has(id); nth++) id = `${own}:${nth}`;
  asked.add(id);
  const place = inherited === true ? placeIn(session, task, key, id) : undefined;
  const expiry = timeOf(owner, declared, asking);
  return { id, place, key, payload, schema: jsonSchemaOf(answerSchema(declared)), expiry };
}

/** A question that the graph declares, or one around it. */
function declaredFor({ session, scope }: HooksAtWork, middleware: string, key: unknown): InterruptDeclaration {
  const { name } = session.plan.graph;
  const declared = typeof key === "string" ? declaredIn(session, key) : undefined;
  const { node } = scope;
  if (declared !== undefined && (node.policy.asks?.includes(key as string) ?? true)) return declared;
  disregardPromises(key);
  const asked = `the middleware "${middleware}" of the node "${node.name}" in graph "${name}" asked ${describeValue(key)}`;
  throw new StatewrightError("unknown_interrupt", {
    what:
      declared === undefined
        ? `${asked}, which the graph does not declare`
        : `${asked}, which the asks of the node do not list`,
    next:
      declared === undefined
        ? "Add the interrupts of the middleware to those of the graph: interrupts: { …, ...middleware.interrupts }"
        : `Add ${describeValue(key)} to the asks of the node`,
    place: placeOf(session, { node: node.name }),
  });
}

function declaredIn(session: Session, key: string): InterruptDeclaration | undefined {
  for (let at: Session | undefined = session; at !== undefined; at = at.around?.session) {
    const { interrupts } = at.plan.graph;
    if (Object.hasOwn(interrupts, key)) return interrupts[key];
  }
  return undefined;
}

/** What inherited middleware asks is a question of the task of the outermost graph that declares it. */
function placeIn(session: Session, task: Task, key: string, id: string): string {
  let home = { session, task };
  for (let at: Session["around"] = home; at !== undefined; at = at.session.around)
    if (Object.hasOwn(at.session.plan.graph.interrupts, key)) home = at;
  return `${home.session.within?.ids ?? ""}${home.task.id}/${id}`;
}

/** How long the question waits: as the hook says, else as it is declared. */
function timeOf(
  owner: string,
  declared: InterruptDeclaration,
  { expiresMs, onExpire }: HookQuestion,
): Expiry | undefined {
  if (expiresMs === undefined && onExpire === undefined) return expiryOf(declared);
  const own = {
    ...("answer" in declared ? declared : { answer: declared }),
    ...(expiresMs === undefined ? {} : { expiresMs }),
    ...(onExpire === undefined ? {} : { onExpire }),
  };
  checkExpiry(owner, own);
  return expiryOf(own);
}

function tooLate({ session, scope }: HooksAtWork, owner: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${owner} was asked when the model had been asked already`,
    next: "Ask in beforeAgent, selectTools or beforeModel",
    place: placeOf(session, { node: scope.task.node }),
  });
}
