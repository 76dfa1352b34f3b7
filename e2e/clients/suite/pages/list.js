export class ListPage {
  constructor(page, id) {
    this.page = page;
    this.id = id;
    this.input = page.getByPlaceholder('What is to be done?');
    this.items = page.getByRole('listitem');
    this.count = page.getByTestId('count');
  }
  goto = () => this.page.goto(`/lists/${this.id}`);
  item = (text) => this.items.filter({ hasText: text });
  async add(...texts) {
    for (const text of texts) {
      await this.input.fill(text);
      await this.input.press('Enter');
      await this.item(text).waitFor();
    }
  }
  complete = (text) => this.item(text).getByRole('checkbox').check();
  remove = (text) => this.item(text).getByRole('button', { name: 'Remove' }).click();
  show = (what) => this.page.getByRole('combobox', { name: 'Show' }).selectOption(what);
}
