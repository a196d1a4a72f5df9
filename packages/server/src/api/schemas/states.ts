/** Schemas of states, history, forks and branches. */
import type { Json, JsonObject, RunStatus } from "@statewright/core";
import * as z from "zod";
import {
  before,
  checkpoint,
  createPage,
  id,
  json,
  jsonObject,
  limit,
  nameSchema,
  queryNumber,
  runStatus,
  time,
  type WirePage,
} from "./common.ts";

/** Open interrupt of a run. */
export interface WireOpenInterrupt {
  readonly id: string;
  readonly key: string;
  readonly node: string;
  readonly payload?: Json | undefined;
  readonly schema?: Json | undefined;
  readonly expiresAt?: string | undefined;
}

/** Fields of an open interrupt. */
export const openInterruptFields: {
  readonly [Field in keyof Required<WireOpenInterrupt>]: z.ZodType<WireOpenInterrupt[Field]>;
} = {
  id: z.string(),
  key: z.string().describe("Name of the interrupt in the graph"),
  node: z.string(),
  payload: json.optional(),
  schema: json.optional().describe("JSON Schema of the answer; absent where the schema has none"),
  expiresAt: time.optional(),
};

const openInterrupt: z.ZodType<WireOpenInterrupt> = nameSchema("OpenInterrupt", z.strictObject(openInterruptFields));

/** Answered or expired interrupt. */
export interface WireClosedInterrupt extends WireOpenInterrupt {
  readonly answer?: Json | undefined;
  readonly answeredAt?: string | undefined;
  readonly answeredBy?: string | undefined;
  readonly expiredAt?: string | undefined;
}

const closedInterrupt: z.ZodType<WireClosedInterrupt> = nameSchema(
  "ClosedInterrupt",
  z.strictObject({
    ...openInterruptFields,
    answer: json.optional().describe("Absent for an expired interrupt without a default answer"),
    answeredAt: time.optional(),
    answeredBy: z.string().optional(),
    expiredAt: time.optional(),
  }),
);

/** State of a thread at a checkpoint. */
export interface WireState {
  readonly thread: string;
  readonly graph: string;
  readonly checkpoint: number;
  readonly parent?: number | undefined;
  readonly branch: string;
  readonly step: number;
  readonly source: string;
  readonly next: readonly string[];
  readonly values: JsonObject;
  readonly interrupts: readonly WireOpenInterrupt[];
  readonly answered: readonly WireClosedInterrupt[];
  readonly status?: RunStatus | undefined;
  readonly run?: string | undefined;
  readonly at: string;
}

/** State of a thread at a checkpoint, without private channels. */
export const state: z.ZodType<WireState> = nameSchema(
  "State",
  z.strictObject({
    thread: z.string(),
    graph: z.string(),
    checkpoint: z.number().int(),
    parent: z.number().int().optional(),
    branch: z.string(),
    step: z.number().int(),
    source: z.string().describe("Reason for the checkpoint, such as input, step, update or fork"),
    next: z.array(z.string()).describe("Nodes that run next; empty at the end"),
    values: jsonObject.describe("Values of the channels"),
    interrupts: z.array(openInterrupt),
    answered: z.array(closedInterrupt),
    status: runStatus.optional(),
    run: z.string().optional(),
    at: time,
  }),
);

/** Page of states. */
export const statePage: z.ZodType<WirePage<WireState>> = createPage("StatePage", state);

/** Place of a state. */
export interface WireStateQuery {
  readonly at?: number | undefined;
  readonly branch?: string | undefined;
  readonly nesting?: string | undefined;
  readonly select?: readonly string[] | undefined;
}

/** Place of a state. */
export const stateQuery: z.ZodType<WireStateQuery> = z.strictObject({
  at: queryNumber.optional().describe("Checkpoint. Default: the newest of the branch."),
  branch: id.optional().describe("Default: the head branch"),
  nesting: id.optional().describe("Path of nodes and tools to an inner graph, such as `research.plan`"),
  select: z.array(id).optional().describe("Channels, separated by commas. Default: all."),
});

/** Page of the history of a branch. */
export interface WireHistoryQuery {
  readonly branch?: string | undefined;
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** Page of the history of a branch. */
export const historyQuery: z.ZodType<WireHistoryQuery> = z.strictObject({
  branch: id.optional().describe("Default: the head branch"),
  before: before.optional(),
  limit: limit.optional(),
});

/** Checkpoints to compare. */
export interface WireDiffQuery {
  readonly from: number;
  readonly to: number;
}

/** Checkpoints to compare. */
export const diffQuery: z.ZodType<WireDiffQuery> = z.strictObject({ from: queryNumber, to: queryNumber });

/** Write to the state. */
export interface WireStateWrite {
  readonly changes: JsonObject;
  readonly as?: string | undefined;
  readonly at?: number | undefined;
  readonly branch?: string | undefined;
}

const asNode = id.optional().describe("Node that writes. Default: the nodes of the checkpoint.");

/** Write to the state. */
export const stateWrite: z.ZodType<WireStateWrite> = nameSchema(
  "StateWrite",
  z.strictObject({
    changes: jsonObject.describe("Values by channel, as a node returns them"),
    as: asNode,
    at: checkpoint.optional().describe("Writes on a new branch from this checkpoint. Default: on `branch`."),
    branch: id.optional().describe("Default: the head branch"),
  }),
);

/** Checkpoint that a write made. */
export interface WireWrittenState {
  readonly checkpoint: number;
  readonly branch: string;
  readonly state: WireState;
}

/** Checkpoint that a write made. */
export const writtenState: z.ZodType<WireWrittenState> = nameSchema(
  "WrittenState",
  z.strictObject({ checkpoint: z.number().int(), branch: z.string(), state }),
);

/** New branch. */
export interface WireNewFork {
  readonly at: number;
  readonly name?: string | undefined;
  readonly changes?: JsonObject | undefined;
  readonly as?: string | undefined;
  readonly moveHead?: boolean | undefined;
}

/** New branch at a checkpoint. */
export const newFork: z.ZodType<WireNewFork> = nameSchema(
  "NewFork",
  z.strictObject({
    at: checkpoint,
    name: id.optional().describe("Default: a new name"),
    changes: jsonObject.optional().describe("Values by channel"),
    as: id.optional().describe("Node that writes the changes, in a checkpoint after the fork"),
    moveHead: z.boolean().optional().describe("Makes the branch the head branch. Default false."),
  }),
);

/** Branch of a thread. */
export interface WireBranch {
  readonly name: string;
  readonly from?: number | undefined;
  readonly head?: number | undefined;
}

const branch: z.ZodType<WireBranch> = nameSchema(
  "Branch",
  z.strictObject({
    name: z.string(),
    from: z.number().int().optional().describe("Checkpoint of the fork"),
    head: z.number().int().optional().describe("Newest checkpoint"),
  }),
);

/** Branches of a thread. */
export interface WireBranchList {
  readonly data: readonly WireBranch[];
}

/** Branches of a thread. */
export const branchList: z.ZodType<WireBranchList> = nameSchema(
  "BranchList",
  z.strictObject({ data: z.array(branch) }),
);
