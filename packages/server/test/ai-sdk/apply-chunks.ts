/** Applies chunks of a UI message stream as clients do, for tests without the AI SDK; the gate `clients` uses the SDK. */
import type { UiChunk, UiPart } from "../../src/ai-sdk/ui-chunk.ts";

type Draft = { type: string } & Record<string, unknown>;

/** Returns the parts of the message, JSON only. Throws for a chunk that names a part that does not exist. */
export function applyChunks(chunks: readonly UiChunk[]): readonly UiPart[] {
  const parts: Draft[] = [];
  let open = new Map<string, Draft>();
  const findCall = (id: string): Draft => {
    const found = parts.findLast((part) => part["toolCallId"] === id);
    if (found === undefined) throw new Error(`no call ${id}`);
    return found;
  };
  const add = (part: Draft): Draft => {
    parts.push(part);
    return part;
  };
  const countStepParts = (): number => parts.length - 1 - parts.findLastIndex(({ type }) => type === "step-start");
  for (const chunk of chunks)
    switch (chunk.type) {
      case "start-step":
        add({ type: "step-start" });
        break;
      case "reset-step":
        parts.splice(parts.length - countStepParts());
        open = new Map();
        break;
      case "text-start":
        open.set(chunk.id, add({ type: "text", text: "", state: "streaming" }));
        break;
      case "reasoning-start":
        open.set(chunk.id, add({ type: "reasoning", id: chunk.id, text: "", state: "streaming" }));
        break;
      case "text-delta":
      case "reasoning-delta": {
        const part = open.get(chunk.id);
        if (part === undefined) throw new Error(`no open text ${chunk.id}`);
        part["text"] = String(part["text"]) + chunk.delta;
        break;
      }
      case "text-end":
      case "reasoning-end": {
        const part = open.get(chunk.id);
        if (part === undefined) throw new Error(`no open text ${chunk.id}`);
        part["state"] = "done";
        open.delete(chunk.id);
        break;
      }
      case "file":
        add({ ...chunk });
        break;
      case "tool-input-start":
        add({ type: `tool-${chunk.toolName}`, toolCallId: chunk.toolCallId, state: "input-streaming", rawInput: "" });
        break;
      case "tool-input-delta": {
        const call = findCall(chunk.toolCallId);
        call["rawInput"] = String(call["rawInput"]) + chunk.inputTextDelta;
        break;
      }
      case "tool-input-available":
      case "tool-input-error": {
        const step = parts.slice(parts.length - countStepParts());
        const known = step.find((part) => part["toolCallId"] === chunk.toolCallId);
        const call = known ?? add({ type: `tool-${chunk.toolName}`, toolCallId: chunk.toolCallId });
        for (const key of ["rawInput", "output", "errorText"]) delete call[key];
        call["input"] = chunk.input;
        call["state"] = chunk.type === "tool-input-error" ? "output-error" : "input-available";
        if (chunk.type === "tool-input-error") call["errorText"] = chunk.errorText;
        else if (chunk.toolMetadata !== undefined) call["toolMetadata"] = chunk.toolMetadata;
        break;
      }
      case "tool-approval-request": {
        const call = findCall(chunk.toolCallId);
        call["state"] = "approval-requested";
        call["approval"] = {
          id: chunk.approvalId,
          ...(chunk.reason === undefined ? {} : { requestReason: chunk.reason }),
          ...(chunk.isAutomatic === undefined ? {} : { isAutomatic: true }),
        };
        break;
      }
      case "tool-approval-response": {
        const { approvalId: id, approved, reason } = chunk;
        const call = parts.find(({ approval }) => isApproval(approval, id));
        if (call === undefined) throw new Error(`no approval ${id}`);
        call["state"] = "approval-responded";
        call["approval"] = { ...(call["approval"] as object), approved, ...(reason === undefined ? {} : { reason }) };
        break;
      }
      case "tool-output-available": {
        const call = findCall(chunk.toolCallId);
        call["state"] = "output-available";
        call["output"] = chunk.output;
        if (chunk.preliminary === true) call["preliminary"] = true;
        else delete call["preliminary"];
        break;
      }
      case "tool-output-error": {
        const call = findCall(chunk.toolCallId);
        for (const key of ["output", "preliminary"]) delete call[key];
        call["state"] = "output-error";
        call["errorText"] = chunk.errorText;
        break;
      }
      case "tool-output-denied":
        findCall(chunk.toolCallId)["state"] = "output-denied";
        break;
      case "steering-message":
        add({ ...chunk });
        break;
      default:
        if (!chunk.type.startsWith("data-") || !("data" in chunk) || chunk.transient === true) break;
        applyData(parts, chunk);
    }
  return JSON.parse(JSON.stringify(parts)) as readonly UiPart[];
}

function applyData(parts: Draft[], chunk: UiChunk & { readonly data: unknown; readonly id?: string }): void {
  const known = parts.find(({ type, id }) => chunk.id !== undefined && type === chunk.type && id === chunk.id);
  if (known === undefined) parts.push({ ...chunk });
  else known["data"] = chunk.data;
}

function isApproval(approval: unknown, id: string): boolean {
  return typeof approval === "object" && approval !== null && "id" in approval && approval.id === id;
}
