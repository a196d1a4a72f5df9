/**
 * Converts messages to the prompt of a language model, keeping order, ids, metadata and bytes as far as the client
 * accepts them.
 */
import type { ModelRequest } from "@statewright/core";
import type { Destination } from "../destination.ts";
import type { PromptMessage } from "./convert-message.ts";
import { type AssembledStart, PromptMemory } from "./prompt-memory.ts";

/**
 * Returns the prompt of a request. `memory` holds the conversions of earlier requests to the same model; the
 * destination must have the same client, model, rules and dialect each time. `start` is the assembled start that the
 * memory has for the messages, if the caller has looked it up.
 */
export function toPrompt<Data, Media, NativePart>(
  { instructions, messages }: Pick<ModelRequest, "instructions" | "messages">,
  to: Destination<Data, Media, NativePart>,
  memory: PromptMemory<Data, Media, NativePart> = new PromptMemory(),
  start?: AssembledStart<Data, Media, NativePart>,
): PromptMessage<Data, Media, NativePart>[] {
  const assembly = memory.assemble(messages, to, start);
  for (const warning of assembly.warnings) to.warn(warning);
  const prompt = assembly.finish();
  if (instructions !== undefined && instructions !== "") prompt.unshift({ role: "system", content: instructions });
  return prompt;
}
