#!/usr/bin/env ruby
# A plugin in Ruby: fills a template. Start it with `ruby template.rb`.
require "json"

$stdout.sync = true

DEFINITION = {
  name: "template",
  description: "Fill a template: each {{name}} becomes the value of that name.",
  parameters: {
    type: "object",
    properties: {
      template: { type: "string", description: "Text with {{name}} where a value goes" },
      values: { type: "object", description: "The values by name" },
    },
    required: ["template", "values"],
    additionalProperties: false,
  },
  effect: "pure",
}.freeze

def fill(params)
  params.fetch("template").gsub(/\{\{(\w+)\}\}/) do
    params.fetch("values").fetch($1) { raise KeyError, "there is no value for #{$1}" }
  end
end

def answer(call)
  { content: [{ type: "text", text: fill(call.fetch("params")) }] }
rescue KeyError => problem
  { content: [{ type: "text", text: problem.message }], error: true }
end

$stdin.each_line do |line|
  message = JSON.parse(line)
  case message["type"]
  when "describe" then puts JSON.generate(DEFINITION)
  when "call" then puts JSON.generate(answer(message))
  end
end
