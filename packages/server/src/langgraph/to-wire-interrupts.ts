/** Open interrupts in the shapes that LangGraph clients render. */
import type { OpenInterrupt } from "@statewright/core";
import { isRecord } from "./is-record.ts";
import type { WireObject } from "./to-wire-message.ts";

/** Interrupt on the wire, with the interrupts of the thread that it stands for. */
export type WireInterrupt =
  /** Approvals of tool calls: a single interrupt for all of them, in the order of the calls. */
  | { readonly kind: "approvals"; readonly id: string; readonly calls: readonly PendingCall[] }
  /** Call of a tool without body, which the client executes. */
  | { readonly kind: "client-tool"; readonly id: string; readonly call: PendingCall }
  | { readonly kind: "other"; readonly id: string; readonly interrupt: OpenInterrupt };

/** Tool call that waits for a person or for the client. */
export interface PendingCall {
  /** Id of the interrupt. */
  readonly interrupt: string;
  readonly node: string;
  readonly callId: string;
  readonly tool: string;
  readonly args: unknown;
  readonly reason: string | undefined;
}

/** Groups open interrupts for the wire. With `hitl: false` every interrupt stands alone, with its own payload. */
export function groupInterrupts(
  interrupts: readonly OpenInterrupt[],
  { hitl }: { readonly hitl: boolean },
): readonly WireInterrupt[] {
  if (!hitl) return interrupts.map((interrupt) => ({ kind: "other", id: interrupt.id, interrupt }));
  const grouped: WireInterrupt[] = [];
  const approvals: PendingCall[] = [];
  for (const interrupt of interrupts) {
    const call = parsePendingCall(interrupt);
    const key = getLastSegment(interrupt.key);
    if (call !== undefined && key === "approve") {
      if (approvals.length === 0) grouped.push({ kind: "approvals", id: interrupt.id, calls: approvals });
      approvals.push(call);
    } else if (call !== undefined && key === call.tool) grouped.push({ kind: "client-tool", id: interrupt.id, call });
    else grouped.push({ kind: "other", id: interrupt.id, interrupt });
  }
  return grouped;
}

/** The key of an interrupt of an inner graph begins with the path of its nodes. */
function getLastSegment(key: string): string {
  return key.slice(key.lastIndexOf(".") + 1);
}

function parsePendingCall({ id, node, payload }: OpenInterrupt): PendingCall | undefined {
  if (!isRecord(payload)) return undefined;
  const { callId, tool, args, reason } = payload;
  if (typeof callId !== "string" || typeof tool !== "string") return undefined;
  return { interrupt: id, node, callId, tool, args, reason: typeof reason === "string" ? reason : undefined };
}

/** Converts an interrupt to the object that clients receive: `{ id, value }`. */
export function toWireInterrupt(wire: WireInterrupt): WireObject {
  switch (wire.kind) {
    case "approvals":
      return { id: wire.id, value: toApprovalRequest(wire.calls) };
    case "client-tool": {
      const { callId, tool, args } = wire.call;
      return { id: wire.id, value: { type: "tool", toolCall: { id: callId, name: tool, args } } };
    }
    case "other": {
      const { payload, schema } = wire.interrupt;
      return { id: wire.id, value: payload, ...(schema === undefined ? {} : { response_schema: schema }) };
    }
  }
}

function toApprovalRequest(calls: readonly PendingCall[]): WireObject {
  return {
    action_requests: calls.map(({ tool, args, reason }) => ({
      name: tool,
      args: args ?? {},
      ...(reason === undefined ? {} : { description: reason }),
    })),
    review_configs: calls.map(({ tool }) => ({ action_name: tool, allowed_decisions: [...decisionTypes] })),
  };
}

/** Decisions about a tool call that waits for approval. */
export const decisionTypes = ["approve", "edit", "reject", "respond"] as const;

/** Returns the name of the node that raised an interrupt. */
export function getInterruptNode(wire: WireInterrupt): string {
  switch (wire.kind) {
    case "approvals":
      return wire.calls[0]?.node ?? "";
    case "client-tool":
      return wire.call.node;
    case "other":
      return wire.interrupt.node;
  }
}
