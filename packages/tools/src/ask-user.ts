/** Tool `ask_user`: asks a person a question. The run waits for the answer, which becomes the tool result. */
import { type DefinedTool, defineTool } from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";

/** Arguments of `ask_user`. */
export interface AskUserArgs {
  readonly question: string;
  readonly choices?: readonly string[];
}

/**
 * Creates the tool `ask_user`. The tool has no body: the application answers the interrupt with the name of the tool.
 */
export function askUser(): DefinedTool<"ask_user", AskUserArgs> {
  return defineTool({
    name: "ask_user",
    label: "Question",
    description:
      "Ask the person a question and wait for the answer. Ask only for information that only the person has.",
    input: jsonSchemaInput<AskUserArgs>({
      type: "object",
      properties: {
        question: { type: "string", minLength: 1, description: "The question, in one or two sentences." },
        choices: {
          type: "array",
          maxItems: 10,
          items: { type: "string", description: "One answer." },
          description: "Answers to choose from, if there are few.",
        },
      },
      required: ["question"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "none" },
  });
}
