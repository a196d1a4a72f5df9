/** Interrupts as AI SDK clients see them: approvals, calls of client tools, and other interrupts in the form of a call. */
import type { Json, OpenInterrupt } from "@statewright/core";
import * as z from "zod";

/** Interrupt in the form of a call. */
export interface UiInterrupt {
  readonly kind: "approval" | "client" | "other";
  readonly id: string;
  /** Key without the path of the sub-agent. */
  readonly key: string;
  /** Call of this message that the interrupt is about; undefined for a call inside a sub-agent, and for other interrupts. */
  readonly callId: string | undefined;
  /** Name of the tool, or the key. */
  readonly name: string;
  /** Arguments of the call, or the payload. */
  readonly input: Json;
  readonly reason: string | undefined;
}

const callPayload = z.object({
  callId: z.string(),
  tool: z.string(),
  args: z.json().optional(),
  reason: z.string().optional(),
});

/** Converts an open interrupt. */
export function toUiInterrupt({ id, key: path, payload }: OpenInterrupt): UiInterrupt {
  const key = path.slice(path.lastIndexOf(".") + 1);
  const isNested = key !== path;
  const call = callPayload.safeParse(payload).data;
  if (call !== undefined && (key === "approve" || key === call.tool)) {
    const { callId, tool, args = {}, reason } = call;
    return {
      kind: key === "approve" ? "approval" : "client",
      id,
      key,
      callId: isNested ? undefined : callId,
      name: tool,
      input: args,
      reason,
    };
  }
  const input = z.json().safeParse(payload ?? null).data ?? null;
  return { kind: "other", id, key, callId: undefined, name: key, input, reason: undefined };
}

/** Id of the tool call that shows the interrupt. */
export function getUiCallId({ callId, id }: UiInterrupt): string {
  return callId ?? id;
}

const verdict = z.union([
  z.boolean().transform((approved) => ({ approved, reason: undefined })),
  z.object({ approved: z.boolean(), reason: z.string().optional() }),
  z.object({ respond: z.string() }).transform(() => ({ approved: true, reason: undefined })),
]);

/** Reads the answer to an approval, also one from another surface; an expired approval was not given. */
export function readVerdict(answer: unknown): { readonly approved: boolean; readonly reason?: string } {
  const { approved, reason } = verdict.safeParse(answer).data ?? { approved: false, reason: undefined };
  return { approved, ...(reason === undefined ? {} : { reason }) };
}

const clientFailure = z.object({ isError: z.literal(true), content: z.string() });

/** Reads the answer of a client tool or of another interrupt as the result of its call. */
export function readAnswer(answer: unknown): { readonly output: Json } | { readonly errorText: string } {
  const failure = clientFailure.safeParse(answer).data;
  if (failure !== undefined) return { errorText: failure.content };
  return { output: z.json().safeParse(answer ?? null).data ?? null };
}
