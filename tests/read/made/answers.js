// A large and a small model, for promptfooconfig.yaml.
const [name, prompt] = process.argv.slice(2);
const number = Number(prompt.split(" ")[2]);
if (name === "small" && number === 3) {
  console.error("the line went dead");
  process.exit(1);
}
console.log(name === "large" ? `It is ${2 * number}.` : "It is 2, I think.");
